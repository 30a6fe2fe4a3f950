/** A tunnel: two sockets whose bytes go both ways, until both sides have ended or one breaks. */
import type { Duplex } from "node:stream"

/** Closes a connection that carried nothing for so long, in milliseconds. */
export const IDLE = 5 * 60_000

/** When `from` has closed: what it sent in full is still delivered, what was cut off is cut off here too. */
const follow = (from: Duplex, to: Duplex): void => {
  from.once("close", () => {
    if (!from.readableEnded) return void to.destroy()
    to.end()
    // Nobody reads it any more: without this its end would not be seen
    to.resume()
  })
}

/** Both sockets must allow that one half is closed, and end by themselves when they are idle. */
export const join = (client: Duplex, target: Duplex): void => {
  follow(client, target)
  follow(target, client)
  client.pipe(target)
  target.pipe(client)
}
