/**
 * The senders and texts of messages, sealed in the state store for a day. Those of one hour share a key, which is destroyed when all of them
 * are a day old: then copies of them in backups and journals are unreadable too.
 */
import { hash } from "node:crypto"
import { Following, StateStore } from "@millrace/event-sourcing"
import { type Array, Clock, Duration, Effect, Schema } from "effect"
import { toIso } from "../Timestamp.ts"
import { Vault } from "../vault/Vault.ts"
import { KEPT } from "./RecentSms.ts"

const Text = Schema.Struct({
  /** A phone number or a name, as the provider tells it. */
  sender: Schema.String,
  message: Schema.String,
  /** Milliseconds since 1970. */
  receivedAt: Schema.Int
})
export type Text = typeof Text.Type

const encode = Schema.encodeSync(Schema.fromJsonString(Text))
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Text))

const TEXTS = "sms"
/** The hours that have a key. */
const HOURS = "smsHours"
const PURPOSE = "sms"
const HOUR = Duration.toMillis("1 hour")

/** Such as `2026-01-31T18`. */
const hourOf = (at: number): string => toIso(at).slice(0, 13)
const subjectOf = (hour: string): string => `sms:${hour}`
const isOver = (hour: string, now: number): boolean => Date.parse(`${hour}:00:00.000Z`) + HOUR + KEPT <= now

export type SmsTexts = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const vault = yield* Vault
  const states = yield* StateStore.StateStore
  // A write without an expected version cannot conflict
  const write = (changes: Array.NonEmptyReadonlyArray<StateStore.Change>) =>
    Effect.asVoid(Effect.catchTag(states.write(changes), "StateConflict", Effect.die))

  const destroyOld = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const { key: hour } of yield* states.list(HOURS)) {
      if (!isOver(hour, now)) continue
      yield* vault.destroy(subjectOf(hour))
      yield* write([{ _tag: "remove", space: HOURS, key: hour }])
    }
  })

  return {
    /** Seals and stores a text until it is a day old. */
    keep: Effect.fnUntraced(function* (id: string, text: Text) {
      const hour = hourOf(text.receivedAt)
      const sealed = yield* vault.seal(subjectOf(hour), PURPOSE, encode(text))
      // The hour stands before the seal, because its key is found by the hour alone
      const value = Buffer.from(`${hour} ${sealed}`)
      const named = { size: value.length, hash: hash("sha256", value, "base64url") }
      yield* write([
        { _tag: "put", space: TEXTS, key: `${id}/${named.hash}`, value, expiresAt: text.receivedAt + KEPT },
        { _tag: "put", space: HOURS, key: hour, value: new Uint8Array() }
      ])
      return named
    }),
    /** The text of a message; undefined if it is a day old, or was altered. */
    open: Effect.fnUntraced(function* (id: string, named: string) {
      const entry = yield* states.get(TEXTS, `${id}/${named}`)
      if (entry === undefined || hash("sha256", entry.value, "base64url") !== named) return undefined
      const [hour = "", sealed = ""] = Buffer.from(entry.value).toString("latin1").split(" ")
      return yield* vault.open(subjectOf(hour), PURPOSE, sealed).pipe(
        Effect.flatMap(decode),
        Effect.catchTag(["SubjectDestroyed", "Tampered", "SchemaError"], () => Effect.undefined)
      )
    }),
    /** Destroys the keys of texts that are a day old, each hour. Never ends. */
    forget: Effect.forever(
      Effect.andThen(
        Following.retryForever(destroyOld, () => {}),
        Effect.sleep(HOUR)
      )
    )
  }
})
