/** The body of a webhook, in the form that Standard Webhooks recommends: `{"type":"job.ended","timestamp":"...","data":{...}}`. */
import { Schema } from "effect"
import * as Notices from "../notices/Notices.ts"

/** `at`: ISO 8601. */
export const encode = (name: string, at: string, data: object): string => JSON.stringify({ type: name, timestamp: at, data })

const common = {
  /** The account that the notice is about. */
  account: Schema.String,
  /** The host's own id of the account, if it has one. */
  reference: Schema.optionalKey(Schema.String)
}

/** The schema of the body of each notice. Amounts are decimal credits outside and thousandths inside. */
export const schemaOf = <N extends Notices.Name>(name: N) =>
  Schema.Struct({
    type: Schema.Literal(name),
    timestamp: Schema.String,
    data: Schema.Struct({ ...common, ...Notices.NOTICES[name].facts.fields })
  })
