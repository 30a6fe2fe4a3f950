/** The randomness, ids and logger of one simulated process, all drawn from the seed. */
import { createHash } from "node:crypto"
import { Ids, RandomBytes } from "@millrace/core"
import { EventIds } from "@millrace/event-sourcing"
import { Cause, Context, Logger, Random } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"

/** `onWarning` gets every message that is logged as a warning or worse. */
export const make = (random: SeededRandom, onWarning: (message: string) => void): Context.Context<never> => {
  const { next } = random.fork("random")
  const bytes = random.fork("bytes")
  return Context.make(EventIds, random.fork("events ids").eventIds()).pipe(
    Context.add(Ids, ids(random.fork("ids"))),
    Context.add(RandomBytes, (size: number) => bytes.bytes(size)),
    Context.add(Random.Random, { nextDoubleUnsafe: next, nextIntUnsafe: () => Math.floor((next() - 0.5) * Number.MAX_SAFE_INTEGER) }),
    Context.add(
      Logger.CurrentLoggers,
      new Set([
        Logger.make(({ logLevel, message, cause }) => {
          if (logLevel === "Warn" || logLevel === "Error" || logLevel === "Fatal") onWarning(`${textOf(message)} ${textOf(cause)}`)
        })
      ])
    )
  )
}

/** The tag of the error, or its text. */
export const errorOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : String(error)
}

const textOf = (logged: unknown): string => {
  if (Cause.isCause(logged))
    return logged.reasons.map((reason) => (reason._tag === "Interrupt" ? "interrupted" : errorOf(Cause.fromReasons([reason])))).join(", ")
  if (Array.isArray(logged)) return logged.map(textOf).join(" ")
  return typeof logged === "object" && logged !== null && "_tag" in logged ? String(logged._tag) : String(logged)
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** Ids that repeat with the seed: ULIDs that grow from one to the next, and UUIDs. */
const ids = (random: SeededRandom): Ids => {
  const tail = Array.from({ length: 10 }, () => DIGITS[random.below(32)]).join("")
  let at = 0
  let count = 0
  return {
    ulid: (now) => {
      at = Math.max(at, now)
      return base32(at, 10) + base32(++count, 6) + tail
    },
    uuid: () => {
      const hex = createHash("sha256").update(`${tail}${++count}`).digest("hex")
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
    }
  }
}

const base32 = (value: number, digits: number): string => {
  let text = ""
  for (let left = value; text.length < digits; left = Math.floor(left / 32)) text = (DIGITS[left % 32] ?? "0") + text
  return text
}
