/** Checks what receivers of webhooks got: it is in the log, it was for them, and it was signed. */
import { isDeepStrictEqual } from "node:util"
import { Redacted } from "effect"
import type { Evidence, Records, Report } from "../Evidence.ts"
import type { RecordedWebhookEvent } from "../LogRecorder.ts"
import type { Opening, Post } from "../Records.ts"
import { urlOf } from "../WebhookActor.ts"
import { noticesIn, type Told } from "./Notices.ts"

/** A webhook after one of its events, until the next one. Times are milliseconds since 1970. */
export interface Version {
  readonly from: number
  readonly until: number
  readonly isRemoved: boolean
  readonly isEnabled: boolean
  readonly url: string
  /** Sealed, with the reason of the act that made it, until when it signs: the newest first. */
  readonly secrets: ReadonlyArray<{ readonly sealed: string; readonly reason: string; readonly until: number }>
  readonly names: ReadonlyArray<string> | null
  readonly accountId: string | null
  /** Only what follows this place in the log is delivered. */
  readonly since: number
}

const NEVER = Number.POSITIVE_INFINITY

const BEFORE: Version = {
  ...{ from: 0, until: NEVER, isRemoved: false, isEnabled: false, url: "", secrets: [], names: null, accountId: null, since: NEVER }
}

/** What an event changes. The reason of an act that sets an address ends with the name of its receiver. */
const changeBy = ({ event, index, metadata }: RecordedWebhookEvent, { secrets }: Version): Partial<Version> => {
  const reason = String(metadata["reason"])
  const url = urlOf(reason.split(" ").at(-1) ?? "")
  switch (event._tag) {
    case "WebhookAdded": {
      const { accountId, names, sealedSecret: sealed } = event
      return { isEnabled: true, url, secrets: [{ sealed, reason, until: NEVER }], names, accountId, since: index }
    }
    case "WebhookChanged":
      return { ...(event.sealedUrl === undefined ? {} : { url }), ...(event.names === undefined ? {} : { names: event.names }) }
    case "WebhookSecretRotated": {
      const before = secrets.slice(0, 1).map((secret) => ({ ...secret, until: event.previousUntil }))
      return { secrets: [{ sealed: event.sealedSecret, reason, until: NEVER }, ...before] }
    }
    case "WebhookDisabled":
      return { isEnabled: false }
    case "WebhookEnabled":
      return { isEnabled: true, ...(event.skipped === undefined ? {} : { since: index }) }
    case "WebhookRemoved":
      return { isRemoved: true, isEnabled: false }
  }
}

/** A webhook after each of its events. */
export const versionsOf = (events: ReadonlyArray<RecordedWebhookEvent>): ReadonlyArray<Version> => {
  let version = BEFORE
  return events.map((recorded, i) => {
    version = { ...version, ...changeBy(recorded, version), from: recorded.arrivedAt, until: events[i + 1]?.arrivedAt ?? NEVER }
    return version
  })
}

const isFor = ({ accountId, names, since }: Version, { account, index, name }: Told): boolean =>
  (names?.includes(name) ?? true) && (accountId === null || accountId === account) && index > since

/** A webhook and a notice that its receiver must have accepted. */
export interface Due {
  readonly webhook: string
  readonly told: Told
}

/** What must have been accepted once everything is delivered: what each webhook that exists selected from the notice's event until now. */
export const dueIn = ({ recorder }: Records, notices: ReadonlyArray<Told>): ReadonlyArray<Due> =>
  [...recorder.webhooks].flatMap(([webhook, events]) => {
    const versions = versionsOf(events)
    if (versions.at(-1)?.isRemoved !== false) return []
    const afterwards = ({ index }: Told) => versions.filter((_, i) => (events[i + 1]?.index ?? NEVER) > index)
    return notices.filter((told) => afterwards(told).every((version) => isFor(version, told))).map((told) => ({ webhook, told }))
  })

/** The webhooks by the addresses that they ever had. */
export const addressesIn = ({ recorder }: Records): ReadonlyMap<string, string> =>
  new Map([...recorder.webhooks].flatMap(([id, events]) => versionsOf(events).map(({ url }) => [url, id] as const)))

/** After this time every host knows of a change, unless it is disturbed: milliseconds. */
const KNOWN_WITHIN = 30_000

export const checkWebhooks = (evidence: Evidence, report: Report): void => {
  const { log, records } = evidence
  if (records.posts.length === 0) return
  const notices = new Map(noticesIn(log).map((told) => [told.id, told]))
  const addresses = addressesIn(records)
  const versions = new Map([...records.recorder.webhooks].map(([id, events]) => [id, versionsOf(events)]))
  const references = referencesIn(records.openings)
  const bodies = new Map<string, string>()
  for (const post of records.posts) {
    const { body, id, url } = post
    const told = notices.get(id)
    const webhook = addresses.get(url)
    if (told === undefined) report(`${url} got ${id}, of which the log does not tell`)
    else if (webhook === undefined) report(`${url} got ${id}, but no webhook had this address`)
    else {
      if (!isDeepStrictEqual(JSON.parse(body), bodyOf(told, references))) report(`${url} got a false ${id}: ${body}`)
      checkPost(evidence, post, told, webhook, versions.get(webhook) ?? [], report)
    }
    if ((bodies.get(id) ?? body) !== body) report(`${url} got ${id} with another body than before`)
    bodies.set(id, body)
  }
}

/** The body of a notice, apart from the order of its fields. */
const bodyOf = ({ account, at, facts, name }: Told, references: ReadonlyMap<string, string>) => {
  const reference = references.get(account)
  return { type: name, timestamp: at, data: { account, ...(reference === undefined ? {} : { reference }), ...facts } }
}

/** The ids that hosts gave to accounts. */
const referencesIn = (openings: ReadonlyArray<Opening>): ReadonlyMap<string, string> =>
  new Map(openings.flatMap(({ accountId, owner }) => (accountId === undefined ? [] : [[accountId, owner.reference] as const])))

/** The webhook was there, with this address and these secrets, and wanted the notice. */
const checkPost = (
  { faults, records, undisturbedSince }: Evidence,
  post: Post,
  told: Told,
  webhook: string,
  versions: ReadonlyArray<Version>,
  report: Report
): void => {
  // The clock of its host is ahead by no more than `skew`
  const begun = post.at - faults.skew
  const between = (from: number) => versions.filter((version) => version.from <= post.sentAt && version.until >= from)
  const what = `${webhook} was posted ${told.id}`
  const read = between(begun).filter(({ isRemoved }) => !isRemoved)
  const isSettled = begun - KNOWN_WITHIN >= undisturbedSince
  const known = between(isSettled ? begun - KNOWN_WITHIN : 0)
  if (read.length === 0) report(`${what} after it was removed`)
  else if (!read.some(({ url }) => url === post.url)) report(`${what} at an address that it had no more`)
  else if (!read.some(({ secrets }) => isSignedBy(records, post, secrets))) report(`${what} with other secrets than it had`)
  if (!known.some((version) => isFor(version, told))) report(`${what}, which it did not want`)
  if (!known.some(({ isEnabled }) => isEnabled)) report(`${what} while it was disabled`)
}

/** Whether a message is signed by exactly the secrets that sign when it is sent. One that nobody was told of, and that is destroyed, is unknown. */
const isSignedBy = ({ secrets: { opened, told } }: Records, { at, secrets: sent }: Post, valid: Version["secrets"]): boolean => {
  const expected = valid.filter(({ until }) => at < until).map(({ reason, sealed }) => told.get(reason) ?? opened.get(sealed))
  return sent.length === expected.length && sent.every((secret, i) => expected[i] === undefined || expected[i] === Redacted.value(secret))
}
