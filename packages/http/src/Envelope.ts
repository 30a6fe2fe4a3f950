/** The envelope of every success. */
import { Schema } from "effect"

/** The echo of a call: the fields of path, query and body together, or an empty array where there are none. */
export const Request = Schema.Struct({
  id: Schema.String,
  method: Schema.String,
  path: Schema.String,
  input: Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.Array(Schema.Unknown).check(Schema.isMaxLength(0))])
})
export type Request = typeof Request.Type

export const Envelope = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({ status: Schema.Literals(["success", "pending"]), data, request: Request })

/** Puts the envelope around data that is JSON text, without changing a byte of it. */
export const text = (status: "success" | "pending", data: string, request: Request): string =>
  `{"status":"${status}","data":${data},"request":${JSON.stringify(request)}}`
