/**
 * Reads a caller's URL safely, against server-side request forgery. The name is resolved once, all its addresses must be public, and the
 * connection goes to a checked address, so a later change of DNS has no effect. Each redirect is checked in the same way.
 */
import { InvalidInput, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Result } from "effect"
import * as CheckedUrl from "./CheckedUrl.ts"
import * as PinnedHost from "./PinnedHost.ts"

const UPSTREAM = "caller's address"

export type Address = PinnedHost.Address

export interface Options extends PinnedHost.Options {
  /** The name of the input field, such as `image_url`. */
  readonly field: string
  /** The value of the `Accept` header. */
  readonly accept: string
  readonly byteLimit: number
  /** The time limit of the read with its redirects. */
  readonly timeLimit: Duration.Input
  /** The most redirects to follow; 3 by default. */
  readonly redirects?: number
  /** Allowed ports; 80 and 443 by default. */
  readonly ports?: ReadonlyArray<number>
}

type Failure = InvalidInput | UpstreamUnavailable

/**
 * `InvalidInput` for a URL that is malformed, has credentials, another scheme or port, or a non-public address; for any status but 200; and
 * for too many redirects or bytes. The message is the same for every non-public address, so it reveals nothing of the internal network.
 * Isolated `UpstreamUnavailable` if the server or its name servers fail or take too long.
 */
export const make = ({
  field,
  accept,
  byteLimit,
  timeLimit,
  redirects = 3,
  ports = CheckedUrl.PORTS,
  ...host
}: Options): ((address: string) => Effect.Effect<Uint8Array, Failure>) => {
  const invalid = (message: string) => new InvalidInput({ field, message: `${field} ${message}` })
  const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason, isolated: true })

  const parse = (address: string, base?: URL): Effect.Effect<URL, InvalidInput> =>
    Effect.fromResult(Result.mapError(CheckedUrl.parse(address, ports, base), invalid))

  const checked = (url: URL) =>
    Effect.mapError(PinnedHost.addressesOf(url, host), (trouble) =>
      trouble === "refused" ? invalid(NOT_PUBLIC) : unavailable("its name cannot be resolved now")
    )

  const read = Effect.fnUntraced(function* (url: URL) {
    const addresses = yield* checked(url)
    const answer = yield* Effect.tryPromise({
      try: (signal) => exchange(url, addresses, { accept, byteLimit, signal }),
      catch: (cause) => unavailable(cause instanceof Error ? cause.message : String(cause))
    })
    if (answer.status === 200) return answer.bytes === undefined ? yield* invalid(`leads to more than ${byteLimit} bytes`) : answer.bytes
    if (CheckedUrl.REDIRECTS.has(answer.status) && answer.location !== undefined) return yield* parse(answer.location, url)
    if (answer.status >= 500 || answer.status === 429) return yield* unavailable(`it answered with status ${answer.status}`)
    return yield* invalid(`answers with status ${answer.status}`)
  })

  return (address) =>
    Effect.gen(function* () {
      let url = yield* parse(address)
      for (let hop = 0; hop <= redirects; hop++) {
        const found = yield* read(url)
        if (!(found instanceof URL)) return found
        url = found
      }
      return yield* invalid("redirects too often")
    }).pipe(Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.fail(unavailable("it exceeds the time limit")) }))
}

const NOT_PUBLIC = "must lead to a public address"

/** One request over its own connection, which is always closed. `bytes`: the body of a 200, undefined if it exceeds the limit. */
const exchange = async (
  url: URL,
  addresses: ReadonlyArray<Address>,
  { accept, byteLimit, signal }: { readonly accept: string; readonly byteLimit: number; readonly signal: AbortSignal }
) => {
  const { agentTo, request } = await import("./PinnedAgent.ts")
  const agent = agentTo(addresses)
  try {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: agent,
      signal,
      headers: { accept, "accept-encoding": "identity", "user-agent": "millrace" }
    })
    // An unread body emits an error when the agent is destroyed: ignore it
    body.on("error", () => undefined)
    const location = typeof headers.location === "string" ? headers.location : undefined
    return { status: statusCode, location, bytes: statusCode === 200 ? await bounded(body, byteLimit) : undefined }
  } finally {
    await agent.destroy()
  }
}

const bounded = async (body: AsyncIterable<Uint8Array>, byteLimit: number): Promise<Uint8Array | undefined> => {
  const pieces: Array<Uint8Array> = []
  let size = 0
  for await (const piece of body) {
    size += piece.byteLength
    if (size > byteLimit) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces, size)
}
