/** A job that validates up to a thousand e-mail addresses. Its results can be read page by page while it runs. */
import { Effect, Schema, Struct } from "effect"
import * as JobOperations from "../jobs/JobOperations.ts"
import { toIso } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { UpstreamUnavailable } from "../work/OperationError.ts"
import { LAST_PAGE, PER_PAGE } from "./CommonLimits.ts"
import { domainName } from "./Dns.ts"
import { Address, EmailReport, EmailValidator, sorted } from "./Email.ts"
import { EXAMPLE_JOB, Status, statusOf } from "./MediaJobs.ts"

const Verdict = EmailReport.mapFields(Struct.pick(["email", "valid", "disposable"]))

/** The results so far, in the order of the checks. The lists only grow. */
const Findings = Schema.Struct({
  results: Schema.Array(Verdict),
  /** Addresses whose domain could not be queried. */
  unchecked: Schema.Array(Schema.String)
})
type Findings = typeof Findings.Type

const NOTHING: Findings = { results: [], unchecked: [] }

export const validationJobs = Operation.family("email.validationJob", {
  resource: "job",
  path: "/email/validation-jobs/:job",
  result: Findings,
  checkpoint: Findings
})

/** The least addresses between two checkpoints. A slice has all addresses of its domains, so each domain is queried once. */
const SLICE = 50

/** Splits addresses into slices. Deterministic, so that another attempt can resume from a checkpoint. */
export const slicesOf = (emails: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const slices: Array<Array<string>> = []
  const ofDomain = Map.groupBy(emails, (email) => {
    const domain = email.slice(email.lastIndexOf("@") + 1)
    return domainName(domain) ?? domain
  })
  for (const group of ofDomain.values()) {
    const last = slices.at(-1)
    if (last === undefined || last.length >= SLICE) slices.push([...group])
    else last.push(...group)
  }
  return slices
}

export const validationJob = Operation.job("email.validationJob", {
  summary: "Validate up to 1,000 e-mail addresses in a job",
  price: 0.6,
  description:
    "Validates each address as for one address, in the background. Each address is charged, also if it is repeated; each domain is " +
    "queried once. Read the job for its progress and its pages of results. Addresses of domains whose name servers do not answer " +
    "are listed in `unchecked` and are free. If that is true of all addresses, the job fails and is free.",
  route: {
    method: "POST",
    path: "/email/validation-jobs",
    body: {
      emails: Schema.Array(Address).check(Schema.isMinLength(1), Schema.isMaxLength(1_000)),
      /** Uses a second list of disposable domains. */
      consensus: Schema.optionalKey(Schema.Boolean)
    },
    status: 201
  },
  family: validationJobs,
  success: Schema.Struct({
    job_id: Schema.String,
    status: Status,
    /** The number of addresses in the request. */
    total_emails: Schema.Int,
    /** ISO 8601, UTC. */
    created_at: Schema.String
  }),
  created: ({ acceptedAt, id, quantity, status }) => ({
    job_id: id,
    status: statusOf(status),
    total_emails: quantity,
    created_at: toIso(acceptedAt)
  }),
  unit: "address",
  quantity: ({ emails }) => emails.length,
  timeout: "15 minutes",
  run: Effect.fnUntraced(function* ({ consensus = false, emails }, job) {
    const validator = yield* EmailValidator
    let { results, unchecked } = job.checkpoint ?? NOTHING
    let done = 0
    for (const slice of slicesOf(emails)) {
      done += slice.length
      if (done <= results.length + unchecked.length) continue
      const checked = sorted(slice, yield* validator.validateAll({ emails: slice, consensus }))
      results = [...results, ...checked.results.map(Struct.pick(["email", "valid", "disposable"]))]
      unchecked = [...unchecked, ...checked.unchecked]
      if (done < emails.length) yield* job.progress((100 * done) / emails.length, { results, unchecked })
    }
    if (results.length === 0) {
      // Discard the checkpoint, so that another attempt starts again
      yield* job.progress(0, NOTHING)
      return yield* new UpstreamUnavailable({ upstream: "email", reason: "No domain could be asked about", isolated: true })
    }
    return { data: { results, unchecked }, quantity: results.length }
  }),
  example: {
    input: { emails: ["grace.hopper@example.com", "nobody@nowhere.invalid"], consensus: true },
    data: { job_id: EXAMPLE_JOB, status: "processing", total_emails: 2, created_at: "2026-11-21T09:30:00.000Z" }
  },
  links: [{ operation: "email.readValidationJob", parameters: { job: "/job_id" } }]
})

export const readValidationJob = JobOperations.readJob("email.readValidationJob", validationJobs, {
  summary: "Read an e-mail validation job and its results",
  description:
    "`results` are in the order of the checks, so a full page does not change. `progress` is 100 when `status` is `completed`. A " +
    "job that `failed` is free. The results are kept for 24 hours.",
  query: {
    page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LAST_PAGE }))),
    /** 25 by default. */
    per_page: Schema.optionalKey(Schema.Int.check(Schema.isBetween(PER_PAGE)))
  },
  success: Schema.Struct({
    job_id: Schema.String,
    status: Status,
    /** Percent. */
    progress: Schema.Int,
    /** The number of addresses in the request. */
    total: Schema.Int,
    /** Addresses checked so far: the total of the pages. */
    checked: Schema.Int,
    /** Valid addresses so far. */
    valid_count: Schema.Int,
    /** Disposable addresses so far. */
    disposable_count: Schema.Int,
    /** Results of this page. */
    results: Schema.Array(Verdict),
    /** Addresses whose domain could not be queried. They have no result and are free. */
    unchecked: Schema.Array(Schema.String)
  }),
  view: (job, { page = 1, per_page = PER_PAGE.default }) =>
    Effect.gen(function* () {
      const { results, unchecked } = (yield* job.result) ?? (yield* job.checkpoint) ?? NOTHING
      return {
        job_id: job.id,
        status: statusOf(job.status),
        progress: job.percent,
        total: job.quantity,
        checked: results.length,
        valid_count: results.filter(({ valid }) => valid).length,
        disposable_count: results.filter(({ disposable }) => disposable).length,
        results: results.slice((page - 1) * per_page, page * per_page),
        unchecked
      }
    }),
  page: ({ checked }, { page = 1, per_page = PER_PAGE.default }) => ({ number: page, size: per_page, total: checked }),
  example: {
    input: { job: EXAMPLE_JOB },
    data: {
      job_id: EXAMPLE_JOB,
      status: "completed",
      progress: 100,
      total: 2,
      checked: 2,
      valid_count: 1,
      disposable_count: 0,
      results: [
        { email: "grace.hopper@example.com", valid: true, disposable: false },
        { email: "nobody@nowhere.invalid", valid: false, disposable: false }
      ],
      unchecked: []
    }
  }
})
