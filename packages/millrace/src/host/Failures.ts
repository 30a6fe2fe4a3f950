/** The errors that the promises of a host reject with. */
import { Credits, Money } from "@millrace/core"
import { Cause } from "effect"
import { CommandFailed } from "../Failure.ts"

/**
 * A failure with a stable `code` such as `insufficient_credits`, a sentence, and its facts: amounts in credits, ids, times. `cause` is the
 * failure as the layers of Effect have it.
 */
export class MillraceError extends Error {
  override readonly name = "MillraceError"
  readonly code: string
  readonly [fact: string]: unknown

  constructor(code: string, message: string, facts: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(message, { cause })
    this.code = code
    // A fact does not change what the error is
    Object.assign(this, facts, { name: this.name, code })
  }
}

interface Tagged {
  readonly _tag: string
  readonly message?: string
  readonly constructor: { readonly fields?: Readonly<Record<string, unknown>> }
}

/** `InsufficientCredits` has the code `insufficient_credits`. */
const codeOf = (tag: string): string => tag.replaceAll(/(?<=[a-z0-9])[A-Z]/gu, "_$&").toLowerCase()

const isTagged = (error: unknown): error is Tagged =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"

/** The fields of a failure. Amounts are thousandths inside and credits outside. */
const factsOf = (failure: Tagged): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(failure.constructor.fields ?? {}).flatMap(([name, schema]) => {
      const value = (failure as unknown as Readonly<Record<string, unknown>>)[name]
      if (name === "_tag" || name === "message" || value === undefined) return []
      return [[name, schema === Credits.Credits ? Credits.toDecimal(value as Credits.Credits) : value]]
    })
  )

/** What to pass to `createMillrace` where the provider of a standard operation is missing. */
const PROVIDERS: Readonly<Record<string, string>> = {
  speech: 'providers: { speech: "espeak" }, or { speech: "openai:URL", speechKey }',
  images: 'providers: { images: "openai:URL", imagesKey }, or with automatic1111:URL or comfyui:URL#CHECKPOINT',
  translation: 'providers: { translate: "https://…" }, the address of a LibreTranslate server',
  "code hosting": 'providers: { codeHost: "https://api.github.com" }, or leave it out',
  "map search": 'providers: { mapSearch: "places", mapSearchKey }, or { mapSearch: "osm:URL", mapSearchContact, overpass }',
  "price alerts": "signIn: { publicUrl, mailRelay }",
  video: 'providers: { video: "youtube", youtubeKey }, or { video: "youtubei" }',
  "video downloads": 'providers: { video: "youtubei" }, of the package @millrace/upstream-youtubei'
}

const sentenceOf = (failure: Tagged & { readonly field?: unknown; readonly upstream?: unknown }, money: Money.Money): string => {
  const { _tag, field, upstream } = failure
  const message = Money.sentenceOf(failure, money)
  const missing = _tag === "UpstreamNotConfigured" ? PROVIDERS[String(upstream)] : undefined
  if (missing !== undefined) return `${message}: pass ${missing} to createMillrace`
  return typeof field === "string" ? `${field}: ${message}` : message || _tag
}

/** A sentence of the command line, which follows its name there, as one that stands alone. */
const begun = (sentence: string): string => sentence.replace(/^[a-z](?=[a-z]* )/u, (letter) => letter.toUpperCase())

/** The error for a failed effect. Its sentence tells amounts in the host's words. */
export const errorOf = (cause: Cause.Cause<unknown>, money: Money.Money): Error => {
  const error = Cause.squash(cause)
  if (error instanceof MillraceError) return error
  if (error instanceof CommandFailed) return new MillraceError("refused", begun(error.message), {}, error)
  if (isTagged(error)) return new MillraceError(codeOf(error._tag), sentenceOf(error, money), factsOf(error), error)
  return error instanceof Error ? error : new Error(String(error))
}
