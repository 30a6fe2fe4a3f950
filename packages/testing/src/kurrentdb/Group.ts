/**
 * One persistent subscription: its place in the log, who consumes it, what is on its way, what is to be tried again and what was
 * parked. Delivery is at least once and in no promised order; what was acknowledged is saved only now and then.
 */
import { Schema } from "effect"
import type { Log, Proposed, Recorded } from "./Log.ts"
import { failure, filterOf } from "./Messages.ts"

export const Settings = Schema.Struct({
  /** Undefined for the whole log. */
  stream: Schema.optional(Schema.String),
  name: Schema.String,
  maxRetries: Schema.Int,
  /** Milliseconds. */
  messageTimeout: Schema.Int,
  checkpointAfter: Schema.Int,
  filter: Schema.optional(
    Schema.Struct({ by: Schema.Literals(["stream", "type"]), regex: Schema.String, prefixes: Schema.Array(Schema.String) })
  )
})
export type Settings = typeof Settings.Type

/** `next` is an index into the log or into the stream. */
export const State = Schema.fromJsonString(Schema.Struct({ settings: Settings, next: Schema.Int }))

export const keyOf = (stream: string | undefined, name: string): string => `${stream ?? "$all"}::${name}`

export interface Delivery {
  readonly event: Recorded
  /** A replayed event is delivered through the link to it in the parked stream. Its id is the one that is acknowledged. */
  readonly link: Recorded | undefined
  readonly retries: number
}

/** The id by which a consumer acknowledges a delivery. */
const settledBy = ({ event, link }: Delivery): string => (link ?? event).id

export interface Consumer {
  readonly bufferSize: number
  readonly send: (delivery: Delivery) => void
  readonly end: (error: ReturnType<typeof failure>) => void
}

interface Sent extends Delivery {
  readonly at: number
  readonly index: number
}

export type Nack = "park" | "retry" | "skip"

export class Group {
  readonly settings: Settings
  readonly #log: Log
  readonly #now: () => number
  readonly #passes: (event: Recorded) => boolean
  readonly #consumers = new Map<Consumer, Map<string, Sent>>()
  readonly #again: Array<Delivery & { readonly index: number }> = []
  readonly #unwatch: () => void
  #next: number
  #turn = 0
  #savedAt: number
  #saved: number
  #parked = 0

  constructor(log: Log, now: () => number, settings: Settings, next: number) {
    this.#log = log
    this.#now = now
    this.settings = settings
    this.#next = next
    this.#saved = next
    this.#savedAt = now()
    const { filter, stream } = settings
    const expression = filter && { getRegex: () => filter.regex, getPrefixList: () => filter.prefixes }
    const passes =
      expression === undefined
        ? () => true
        : filterOf({
            hasStreamIdentifier: () => filter?.by === "stream",
            getStreamIdentifier: () => expression,
            getEventType: () => expression,
            hasMax: () => false,
            getMax: () => 0,
            getCheckpointintervalmultiplier: () => 1
          }).passes
    this.#passes = (event) => (stream !== undefined || !event.stream.startsWith("$")) && passes(event)
    this.#unwatch = log.watch(() => this.#dispatch())
  }

  get key(): string {
    return keyOf(this.settings.stream, this.settings.name)
  }

  /** Links to what was parked, as on the server. */
  get parkedStream(): string {
    return `$persistentsubscription-${this.key}-parked`
  }

  get inFlight(): number {
    let sum = 0
    for (const sent of this.#consumers.values()) sum += sent.size
    return sum
  }

  join(consumer: Consumer): void {
    this.#consumers.set(consumer, new Map())
    this.#dispatch()
  }

  /** What it had and did not acknowledge goes to another. */
  leave(consumer: Consumer): void {
    const sent = this.#consumers.get(consumer)
    this.#consumers.delete(consumer)
    for (const one of sent?.values() ?? []) this.#retry(one)
    this.#dispatch()
  }

  ack(consumer: Consumer, ids: ReadonlyArray<string>): void {
    for (const id of ids) this.#consumers.get(consumer)?.delete(id)
    this.#dispatch()
  }

  nack(consumer: Consumer, ids: ReadonlyArray<string>, action: Nack): void {
    const sent = this.#consumers.get(consumer)
    for (const id of ids) {
      const one = sent?.get(id)
      if (one === undefined) continue
      sent?.delete(id)
      if (action === "retry") this.#retry(one)
      else if (action === "park") this.#park(one.event)
    }
    this.#dispatch()
  }

  /** What was parked is delivered again, as if for the first time. */
  replay(): void {
    const links = this.#log.visible(this.parkedStream)
    for (const link of links) {
      const [revision = "", ...stream] = Buffer.from(link.data).toString().split("@")
      const event = this.#log.visible(stream.join("@")).find((one) => one.revision === BigInt(revision))
      if (event !== undefined) this.#again.push({ event, link, retries: 0, index: -1 })
    }
    const last = links.at(-1)
    if (last !== undefined) this.#write(`$$${this.parkedStream}`, "$metadata", `{"$tb":${last.revision + 1n}}`)
    this.#dispatch()
  }

  get parkedCount(): number {
    return this.#log.visible(this.parkedStream).length
  }

  /** Lets time pass: deliveries that were not acknowledged in time go out again, the place is saved. */
  tick(): void {
    const now = this.#now()
    for (const sent of this.#consumers.values()) {
      for (const [id, one] of sent) {
        if (now - one.at < this.settings.messageTimeout) continue
        sent.delete(id)
        this.#retry(one)
      }
    }
    if (now - this.#savedAt >= this.settings.checkpointAfter) this.#save(now)
    this.#dispatch()
  }

  end(): void {
    this.#unwatch()
    const error = failure(1, "The persistent subscription was deleted.", {
      exception: "persistent-subscription-dropped",
      "stream-name": this.settings.stream ?? "$all",
      "group-name": this.settings.name
    })
    for (const consumer of this.#consumers.keys()) consumer.end(error)
  }

  #save(now: number): void {
    this.#savedAt = now
    const open = [...this.#again, ...[...this.#consumers.values()].flatMap((sent) => [...sent.values()])]
    const next = Math.min(this.#next, ...open.flatMap(({ index }) => (index < 0 ? [] : [index])))
    if (next === this.#saved) return
    this.#saved = next
    this.#log.saveGroup(this.key, Schema.encodeSync(State)({ settings: this.settings, next }))
  }

  #retry({ event, link, retries, index }: Sent): void {
    if (retries >= this.settings.maxRetries) this.#park(event)
    else this.#again.push({ event, link, retries: retries + 1, index })
  }

  #park(event: Recorded): void {
    this.#write(this.parkedStream, "$>", `${event.revision}@${event.stream}`)
  }

  #write(stream: string, type: string, data: string): void {
    const digits = (++this.#parked).toString(16).padStart(12, "0")
    const id = `00000000-0000-4000-8000-${digits}`
    const proposed: Proposed = {
      id,
      type,
      contentType: type === "$>" ? "application/octet-stream" : "application/json",
      data: new Uint8Array(Buffer.from(data)),
      metadata: new Uint8Array()
    }
    const last = this.#log.last(stream)
    this.#log.append(stream, last < 0n ? "noStream" : last, [proposed], this.#now())
  }

  /** To each consumer in turn, as many as it has room for. */
  #dispatch(): void {
    for (;;) {
      const free = [...this.#consumers].filter(([consumer, sent]) => sent.size < consumer.bufferSize)
      const chosen = free[this.#turn % Math.max(1, free.length)]
      if (chosen === undefined) return
      const next = this.#again.shift() ?? this.#take()
      if (next === undefined) return
      this.#turn++
      const [consumer, sent] = chosen
      sent.set(settledBy(next), { ...next, at: this.#now() })
      consumer.send(next)
    }
  }

  #take(): (Delivery & { readonly index: number }) | undefined {
    const { stream } = this.settings
    const events = stream === undefined ? this.#log.all : this.#log.visible(stream)
    for (;;) {
      const event = events[this.#next]
      if (event === undefined) return undefined
      const index = this.#next++
      if (this.#passes(event)) return { event, link: undefined, retries: 0, index }
    }
  }
}
