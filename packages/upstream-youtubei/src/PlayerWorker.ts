/** The worker thread of the site's player: analyses its script, and runs what is needed of it. A failure ends the thread. */
import { parentPort } from "node:worker_threads"
import { Log, Platform, Player } from "youtubei.js"
import type { Extract, Locked, PlayerOrder, PlayerReply } from "./PlayerReply.ts"
import { run } from "./Sandbox.ts"

Log.setLevel(Log.Level.NONE)
Platform.load({ ...Platform.shim, eval: ({ output }) => run(output) as object })

const NSIG = "nsigFunction"

const analyse = async (id: string, script: string): Promise<PlayerReply> => {
  const player = await Player.create(undefined, async () => new Response(script), undefined, id)
  const { data, signature_timestamp: timestamp } = player
  if (data === undefined || timestamp === 0 || !data.exported.includes(NSIG)) return { _tag: "Unknown" }
  return { _tag: "Analysed", player: { id, timestamp, output: data.output, exported: data.exported } }
}

const unlock = async ({ id, timestamp, ...data }: Extract, links: ReadonlyArray<Locked>): Promise<PlayerReply> => {
  const player = new Player(id, timestamp, { ...data, exported: [...data.exported] })
  const known = new Map<string, string>()
  const urls: Array<string | null> = []
  for (const { cipher, signature_cipher, url } of links) {
    // Code that failed once would take its time for each of the others
    const failed = urls.at(-1) === null
    urls.push(failed ? null : await player.decipher(url, signature_cipher, cipher, known).catch(() => null))
  }
  return { _tag: "Unlocked", urls }
}

const answer = (order: PlayerOrder): Promise<PlayerReply> =>
  order._tag === "Analyse" ? analyse(order.id, order.script).catch(() => ({ _tag: "Unknown" })) : unlock(order.player, order.links)

parentPort?.on("message", async (order: PlayerOrder) => parentPort?.postMessage(await answer(order)))
parentPort?.postMessage("ready")
