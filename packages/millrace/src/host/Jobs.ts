/** What a host does with a job that it accepted: read it, wait for it, cancel it, read its files. */
import { type Charge, type Operation as Core, Jobs, type Millrace } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { Mistake } from "./Given.ts"
import type { Job, JobView } from "./Job.ts"
import { assertJob } from "./Mistakes.ts"
import type { Run } from "./Run.ts"
import { restored } from "./Work.ts"

/** Whose job it is. Another account's job is not found. */
export interface Owner {
  readonly account: string
}

/** A file of a job. */
export interface JobFile {
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  readonly filename: string
  /** The bytes, decrypted as they are read. */
  readonly stream: ReadableStream<Uint8Array>
}

// biome-ignore lint/suspicious/noExplicitAny: jobs of any input
type AnyJob<Result> = Job<any, Result, any>

export interface JobActs {
  /** A job as it is now. */
  readonly read: <Result>(job: AnyJob<Result>, id: string, owner: Owner) => Promise<JobView<Result>>
  /** The job once it has ended, or after `timeout` milliseconds as it is then: a minute by default. */
  readonly wait: <Result>(job: AnyJob<Result>, id: string, options: Owner & { readonly timeout?: number }) => Promise<JobView<Result>>
  /** Ends a job that has not ended, which then costs nothing, and deletes its results. Whether this call ended it. */
  readonly cancel: (job: AnyJob<unknown>, id: string, owner: Owner) => Promise<boolean>
  /** A file of a job that has succeeded: the first, unless `part` says otherwise. */
  readonly file: (job: AnyJob<unknown>, id: string, options: Owner & { readonly part?: number }) => Promise<JobFile>
}

/** Runs a free operation of a job for its owner. */
type Call = (operation: Core.Any, input: Readonly<Record<string, unknown>>, account: string) => Effect.Effect<Reply, unknown, Needs>
/** What a call of an account needs. */
export type Needs = Charge.Charge | Millrace.Administration | EventStore.EventStore

interface Reply {
  readonly data: unknown
  readonly file?: Core.Download
}

const MINUTE = 60_000

export const jobsOf = (run: Run<Jobs | Needs>, call: Call): JobActs => {
  const read = Effect.fnUntraced(function* <Result>({ companions, decodeResult, key }: AnyJob<Result>, id: string, account: string) {
    const { data } = yield* call(companions.read, { job: id }, account)
    const view = data as JobView<unknown>
    const result = view.result === null ? null : yield* restored(key, "result", decodeResult, view.result)
    return { ...view, result } as JobView<Result>
  })
  return {
    read: async (job, id, owner) => {
      assertJob("jobs.read", job, owner)
      return run(read(job, id, owner.account))
    },
    wait: async (job, id, options) => {
      assertJob("jobs.wait", job, options)
      const { account, timeout = MINUTE } = options
      return run(
        Effect.gen(function* () {
          // Another account's job is not found
          const view = yield* read(job, id, account)
          if (view.ended_at !== null) return view
          yield* Jobs.use((jobs) => jobs.wait(id, timeout))
          return yield* read(job, id, account)
        })
      )
    },
    cancel: async (job, id, owner) => {
      assertJob("jobs.cancel", job, owner)
      const { companions, key } = job
      return run(
        Effect.suspend(() => {
          if (companions.cancel === undefined) throw new Mistake(`The job ${JSON.stringify(key)} cannot be cancelled`)
          return Effect.map(call(companions.cancel, { job: id }, owner.account), ({ data }) => (data as { cancelled: boolean }).cancelled)
        })
      )
    },
    file: async (job, id, options) => {
      assertJob("jobs.file", job, options)
      const { companions, key } = job
      const { account, part = 1 } = options
      return run(
        Effect.gen(function* () {
          if (companions.download === undefined)
            throw new Mistake(`The job ${JSON.stringify(key)} has no files: say which in its option files`)
          const { file } = yield* call(companions.download, { job: id, part }, account)
          if (file === undefined) throw new Error("A download answers with a file")
          const { contentType, filename, size } = file
          return { contentType, filename, size, stream: Stream.toReadableStream(yield* file.read()) }
        })
      )
    }
  }
}
