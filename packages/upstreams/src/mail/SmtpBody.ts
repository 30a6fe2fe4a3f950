/** Reads what comes after DATA, within bounds on memory. */
import type { Readable } from "node:stream"
import { Effect, Result } from "effect"
import { NOT_NOW, type Refusal, tooLarge } from "./SmtpAnswers.ts"

export interface BodyLimits {
  /** Bytes of a message. */
  readonly size: number
  /** Bytes of all messages that are being received, together. */
  readonly buffered: number
}

/** Bytes of all messages that are being received. */
export interface Buffered {
  bytes: number
}

/** A client that sends more bytes than this many times the limit does not stop. */
const PATIENCE = 4

type Body = Result.Result<Buffer, Refusal>

/**
 * The message, whose bytes the caller takes off `total` when it is done. A refusal if it is too large or if memory is short: what follows is
 * then read and dropped. Fails if the connection ends before the message, or if the client does not stop.
 */
export const read = (stream: Readable, { size, buffered }: BodyLimits, total: Buffered): Effect.Effect<Body, "ended" | "endless"> =>
  Effect.callback((resume) => {
    // One buffer that grows: a message of dots comes in millions of chunks
    let body: Buffer = Buffer.allocUnsafe(0)
    let kept = 0
    let seen = 0
    let refusal: Refusal | undefined
    const drop = () => {
      total.bytes -= kept
      kept = 0
      body = Buffer.allocUnsafe(0)
    }
    const leave = (result: Effect.Effect<Body, "ended" | "endless">) => {
      stream.off("data", take).off("end", end).off("close", cut)
      resume(result)
    }
    const take = (chunk: Buffer) => {
      seen += chunk.length
      if (seen > size) refusal = tooLarge(size)
      else if (total.bytes + chunk.length > buffered) refusal ??= NOT_NOW
      if (seen > size * PATIENCE) leave(Effect.fail("endless"))
      if (refusal !== undefined) return drop()
      if (kept + chunk.length > body.length) body = grown(body, kept, chunk.length)
      chunk.copy(body, kept)
      kept += chunk.length
      total.bytes += chunk.length
    }
    const end = () =>
      leave(Effect.succeed(refusal === undefined ? Result.succeed(Buffer.from(body.subarray(0, kept))) : Result.fail(refusal)))
    const cut = () => {
      drop()
      leave(Effect.fail("ended"))
    }
    stream.on("data", take).once("end", end).once("close", cut).on("error", cut)
    return Effect.sync(drop)
  })

/** A copy with room for as much again, and for what comes. */
const grown = (body: Buffer, kept: number, more: number): Buffer => {
  const next = Buffer.allocUnsafe(Math.max(2 * body.length, kept + more, 8_192))
  body.copy(next, 0, 0, kept)
  return next
}
