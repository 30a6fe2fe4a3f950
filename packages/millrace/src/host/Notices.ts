/** What a host is told while it runs: events of accounts and jobs, read from the log as any host on the store writes them. */
import { Account, type AccountEvent, Credits, Job, Jobs } from "@millrace/core"
import { EventHandlers, EventStore, Following, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Fiber, Schedule, type Scope } from "effect"
import type { Run } from "./Run.ts"

/** The notices by name, each with its facts. Amounts in credits. */
export interface Notices {
  readonly "account.opened": object
  readonly "account.suspended": object
  readonly "account.reinstated": object
  readonly "account.closed": object
  readonly "credits.granted": { readonly lot: string; readonly amount: number; readonly source: string }
  /** A payment was taken back. `debt`: what was spent of it. */
  readonly "credits.clawedBack": { readonly lot: string; readonly amount: number; readonly debt: number }
  /** A charge was returned, or a part of it. */
  readonly "charge.refunded": { readonly reservation: string; readonly amount: number; readonly reason: string }
  readonly "lot.expired": { readonly lot: string; readonly amount: number }
  readonly "job.ended": {
    readonly job: string
    readonly operation: string
    readonly request: string
    readonly status: "succeeded" | "failed" | "cancelled"
  }
}

export type NoticeName = keyof Notices

/** A notice, with the account that it is about. `position` is the place of its event in the log, and names the notice. */
export type Notice<Name extends NoticeName> = Notices[Name] & {
  readonly name: Name
  readonly account: string
  readonly at: Date
  readonly position: string
}

type AnyNotice = { readonly [Name in NoticeName]: Notice<Name> }[NoticeName]
type Facts = { readonly [Name in NoticeName]: Notices[Name] & { readonly name: Name } }[NoticeName]

export interface Listening {
  /**
   * Calls `handler` for each notice of this name from now on, one after another, until the function that it resolves to is called or the host
   * closes. What happens while no host listens is in the log, and is not told later. What the handler throws is logged.
   */
  readonly on: <Name extends NoticeName>(
    name: Name,
    handler: (notice: Notice<Name>) => void | PromiseLike<void>
  ) => Promise<() => Promise<void>>
}

const { toDecimal } = Credits

const ofAccounts = EventHandlers.of<AccountEvent, [], Facts | undefined>(Account.Account, {
  AccountOpened: () => ({ name: "account.opened" }),
  AccountSuspended: () => ({ name: "account.suspended" }),
  AccountReinstated: () => ({ name: "account.reinstated" }),
  AccountClosed: () => ({ name: "account.closed" }),
  CreditsGranted: ({ amount, lotId, source }) => ({ name: "credits.granted", lot: lotId, amount: toDecimal(amount), source }),
  CreditsClawedBack: ({ amount, debt, lotId }) => ({
    ...{ name: "credits.clawedBack", lot: lotId },
    amount: toDecimal(amount),
    debt: toDecimal(debt)
  }),
  Refunded: ({ amount, reason, reservationId, stage }) =>
    stage === "reserved" ? undefined : { name: "charge.refunded", reservation: reservationId, amount: toDecimal(amount), reason },
  LotExpired: ({ amount, lotId }) => ({ name: "lot.expired", lot: lotId, amount: toDecimal(amount) })
})

const ofJobs = EventHandlers.of<Job.JobEvent, [], "succeeded" | "failed" | "cancelled">(Job.Job, {
  JobSucceeded: () => "succeeded",
  JobFailed: () => "failed",
  JobCancelled: () => "cancelled"
})

/** The notice of an event, if it is one of this name. Only such an event is looked up. */
const noticeOf = Effect.fnUntraced(function* (event: EventStore.RecordedEvent, name: NoticeName) {
  const id = StreamName.id(event.stream)
  const facts = name === "job.ended" ? yield* endOfJob(event, id) : ofAccounts.dispatch(event)
  if (facts?.name !== name) return undefined
  return { account: id, ...facts, at: new Date(HashChain.atOf(event)), position: event.position } as AnyNotice
})

const endOfJob = Effect.fnUntraced(function* (event: EventStore.RecordedEvent, job: string) {
  const status = ofJobs.dispatch(event)
  if (status === undefined) return undefined
  const reading = Jobs.use((jobs) => jobs.read(job))
  const { state } = yield* Effect.retry(reading, { while: ({ _tag }) => _tag !== "StreamRefused", schedule: PAUSES })
  if (!("accepted" in state)) return undefined
  const { accountId, operation, requestId } = state.accepted
  return { name: "job.ended", job, operation, request: requestId, status, account: accountId } as const
})

/** A store that does not answer is asked again until it does. */
const PAUSES = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])

/** `scope`: that of the host, whose end ends the listening. */
export const listeningOf = (run: Run<Jobs | EventStore.EventStore>, scope: Scope.Scope): Listening => ({
  on: async (name, handler) => {
    const fiber = await run(
      Effect.gen(function* () {
        const events = yield* EventStore.EventStore
        let position = yield* events.head
        const tell = (event: EventStore.RecordedEvent) =>
          Effect.gen(function* () {
            const notice = yield* noticeOf(event, name)
            if (notice !== undefined) yield* Effect.promise(async () => handler(notice as never))
          }).pipe(
            Effect.catchCause((cause) => Effect.logError(`A handler of ${name} failed`, cause)),
            Effect.andThen(
              Effect.sync(() => {
                position = event.position
              })
            )
          )
        const following = Following.follow(
          () => position,
          ({ events }) => Effect.forEach(events, tell, { discard: true }),
          () => {}
        )
        return yield* Effect.forkIn(following, scope)
      })
    )
    return () => run(Effect.asVoid(Fiber.interrupt(fiber)))
  }
})
