/**
 * The master key: 32 bytes that a host keeps outside its stores. It wraps all other keys, and every HMAC key derives from it. Without it,
 * no sealed text or blob can be read again.
 */
import { Context, Effect, Layer, Redacted, Result, Schema } from "effect"
import { KEY } from "./Aead.ts"
import { RandomBytes } from "./RandomBytes.ts"

/** The key is not 32 bytes or their text. The reason never quotes the key. */
export class MalformedMasterKey extends Schema.TaggedError<MalformedMasterKey>()("MalformedMasterKey", { reason: Schema.String }) {
  override get message(): string {
    return `The master key cannot be used: ${this.reason}`
  }
}

const malformed = (reason: string) => Result.fail(new MalformedMasterKey({ reason }))

const HEX = /^[0-9a-f]{64}$/iu
const BASE64 = /^[0-9a-z+/_-]{43}=?$/iu

/** Parses 32 bytes or their text: 64 hexadecimal digits, or base64 in either alphabet. White space around the text is ignored. */
export const parse = (key: Uint8Array | string): Result.Result<Redacted.Redacted<Uint8Array>, MalformedMasterKey> => {
  if (typeof key === "string") {
    const text = key.trim()
    if (HEX.test(text)) return parse(Buffer.from(text, "hex"))
    if (!BASE64.test(text)) return malformed("A master key is 64 hexadecimal digits, or 44 characters of base64")
    const bytes = Buffer.from(text, "base64")
    // The last digit has unused bits: without this check a typing error in it would go unnoticed
    if (bytes.toString("base64url") !== text.replace("=", "").replaceAll("+", "-").replaceAll("/", "_"))
      return malformed("The base64 text of the master key ends in an invalid digit")
    return parse(bytes)
  }
  if (key.length !== KEY) return malformed(`A master key has ${KEY} bytes, not ${key.length}`)
  return Result.succeed(Redacted.make(Uint8Array.from(key), { label: "MasterKey" }))
}

/** A new master key as 64 hexadecimal digits. */
export const generate: Effect.Effect<Redacted.Redacted<string>> = Effect.map(RandomBytes, (random) =>
  Redacted.make(Buffer.from(random(KEY)).toString("hex"), { label: "MasterKey" })
)

export class MasterKey extends Context.Service<MasterKey, Redacted.Redacted<Uint8Array>>()("@millrace/core/vault/MasterKey") {
  /** Provides the key that {@link parse} accepts. */
  static readonly layer = (key: Uint8Array | string | Redacted.Redacted<Uint8Array | string>): Layer.Layer<MasterKey, MalformedMasterKey> =>
    Layer.effect(
      MasterKey,
      Effect.suspend(() => Effect.fromResult(parse(Redacted.isRedacted(key) ? Redacted.value(key) : key)))
    )
}
