/** What a run of the tests makes once, when the first of them asks for it: they are told where, over HTTP, for they run in other processes. */
import { once } from "node:events"
import { createServer } from "node:http"

export interface OnRequest {
  /** Whoever asks here is answered what `make` said, or status 500 and why it failed. */
  readonly url: string
  readonly close: () => void
}

/** Serves what `make` says, which is called for the first request only. */
export const onRequest = async (make: () => Promise<string>): Promise<OnRequest> => {
  let made: Promise<string> | undefined
  const server = createServer((_, response) => {
    made ??= make()
    made.then(
      (text) => response.end(text),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The server has no port")
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() }
}

/** Asks for it. Rejects with the reason why it could not be made. */
export const obtain = async (url: string): Promise<string> => {
  const answer = await fetch(url)
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}
