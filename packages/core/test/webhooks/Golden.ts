/** Recorded webhooks and their states: text that must be the same in every release. See `test/golden/addWebhook.ts`. */
import { Webhook } from "@millrace/core"
import { decodeWith, type RecordedLine } from "../ledger/Golden.ts"

export const { codec } = Webhook.Webhook

export const decodeLog = (log: ReadonlyArray<RecordedLine>) => decodeWith(codec, log)

/** The state of the webhook after each of its events, as lines of JSON. */
export const replay = (log: ReadonlyArray<RecordedLine>): string => {
  let webhook: Webhook.Webhook = Webhook.Webhook.initial
  return decodeLog(log)
    .map(({ at, event }) => {
      webhook = Webhook.Webhook.evolve(webhook, event, at)
      return `${JSON.stringify(webhook, Object.keys(flat(webhook)).sort())}\n`
    })
    .join("")
}

/** The names of all fields, also of those within fields. */
const flat = (value: unknown): object =>
  typeof value === "object" && value !== null
    ? Object.assign({}, ...Object.entries(value).map(([name, inner]) => ({ [name]: 0, ...flat(inner) })))
    : {}
