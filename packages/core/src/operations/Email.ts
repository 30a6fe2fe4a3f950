/** Validation of e-mail addresses. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "./Operation.ts"
import type { UpstreamUnavailable } from "./OperationError.ts"

export const EmailReport = Schema.Struct({
  email: Schema.String,
  valid: Schema.Boolean,
  disposable: Schema.Boolean,
  domain: Schema.String,
  syntax_valid: Schema.Boolean,
  mx_records: Schema.Boolean,
  score: Schema.Finite
})
export type EmailReport = typeof EmailReport.Type

export class EmailValidator extends Context.Service<
  EmailValidator,
  {
    readonly validate: (request: {
      readonly email: string
      /** Asks a second engine, too. */
      readonly consensus: boolean
    }) => Effect.Effect<EmailReport, UpstreamUnavailable>
  }
>()("@millrace/core/operations/Email/EmailValidator") {}

export const validate = Operation.make("email.validate", {
  summary: "Validate an e-mail address",
  route: {
    method: "POST",
    path: "/email/validate",
    body: { email: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255)), consensus: Schema.optionalKey(Schema.Boolean) }
  },
  success: EmailReport,
  run: Effect.fnUntraced(function* ({ email, consensus = false }) {
    const validator = yield* EmailValidator
    return { data: yield* validator.validate({ email, consensus }) }
  })
})
