/** Validation of e-mail addresses. */
import { email, flag, integer, jobId, type Row, row, strings } from "../Row.ts"

const consensus = flag()
const emails = (maxItems: number) => strings({ required: true, minItems: 1, maxItems, item: "grace.hopper@example.com" })
const price = { credits: 0.6, per: "email" } as const

export const emailValidation: ReadonlyArray<Row> = [
  row("POST", "/email/validate", "email.validate", { body: { email: email({ required: true, maxLength: 255 }), consensus }, price: 1 }),
  row("POST", "/email/validate-batch", "email.validateBatch", { body: { emails: emails(50) }, price }),
  row("POST", "/email/validation-jobs", "email.validationJob", {
    body: { emails: emails(1000), consensus },
    price,
    status: 201,
    makesJob: true
  }),
  row("GET", "/email/validation-jobs/{job}", "email.readValidationJob", {
    path: { job: jobId() },
    query: { page: integer(), per_page: integer() },
    price: 0,
    madeBy: "email.validationJob",
    notShown: ["bounds of page and per_page"]
  })
]
