/** What every success is wrapped in. */
import { Schema } from "effect"

/** The echo of a call: path, query and body fields together; an empty array when there were none. */
export const Request = Schema.Struct({
  id: Schema.String,
  method: Schema.String,
  path: Schema.String,
  input: Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.Array(Schema.Unknown).check(Schema.isMaxLength(0))])
})
export type Request = typeof Request.Type

export const Envelope = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({ status: Schema.Literals(["success", "pending"]), data, request: Request })

/** Around data that is JSON text already: not a byte of it changes. */
export const text = (status: "success" | "pending", data: string, request: Request): string =>
  `{"status":"${status}","data":${data},"request":${JSON.stringify(request)}}`
