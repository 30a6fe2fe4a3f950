/** Reads of a stream or of the log, in both directions, and subscriptions to them. */
import type { handleServerStreamingCall, ServerWritableStream } from "@grpc/grpc-js"
import type { Recorded } from "./Log.ts"
import { type Filter, filterOf, handlerThrew, identifierOf, nameOf, readEventOf, streamDeleted } from "./Messages.ts"
import type { Node } from "./Node.ts"
import { streams } from "./Protocol.ts"

type Read = ServerWritableStream<streams.ReadReq, streams.ReadResp>

const BACKWARDS = 1

export const read =
  (node: Node): handleServerStreamingCall<streams.ReadReq, streams.ReadResp> =>
  (call) => {
    const options = call.request.getOptions()
    const isSubscription = options?.hasSubscription() ?? false
    const method = isSubscription ? "Subscribe" : "Read"
    const refusal = node.admit(method, call)
    node.opened(method, call)
    call.on("error", () => {})
    const failing = refusal ?? node.failing(call, isSubscription ? node.faults.subscribe() : node.faults.read())
    if (failing === "silent") return
    if (failing !== undefined) return void call.emit("error", failing)
    if (options === undefined) return void call.emit("error", handlerThrew())
    const stream = options.getStream()
    const name = stream === undefined ? undefined : nameOf(stream.getStreamIdentifier())
    if (name !== undefined && node.log.isTombstoned(name)) return void call.emit("error", streamDeleted(name))
    const filter = options.getFilter()
    const passes = filter === undefined ? undefined : filterOf(filter)
    if (isSubscription) {
      node.subscribed(call)
      return follow(node, call, options, name, passes)
    }
    if (name !== undefined && (!node.log.exists(name) || node.log.misses(name, node.faults.missesOfRevived))) {
      const missing = new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifierOf(name))
      call.write(new streams.ReadResp().setStreamNotFound(missing))
      call.end()
      return
    }
    const events = name === undefined ? ofLog(node, options) : ofStream(node, name, options)
    const wanted = passes === undefined ? events : events.filter(passes.passes)
    send(call, wanted.slice(0, Number(BigInt.asUintN(53, BigInt(options.getCount())))))
  }

const ofStream = (node: Node, name: string, options: streams.ReadReq.Options): Array<Recorded> => {
  const stream = options.getStream()
  const events = node.log.visible(name)
  const backwards = options.getReadDirection() === BACKWARDS
  if (stream === undefined || stream.hasStart()) return backwards ? events.slice(0, 1) : [...events]
  if (stream.hasEnd()) return backwards ? events.toReversed() : []
  const from = BigInt(stream.getRevision())
  return backwards
    ? events.filter(({ revision }) => revision <= from).toReversed()
    : events.slice(events.findIndex(({ revision }) => revision >= from)).filter(({ revision }) => revision >= from)
}

/** Reads from a position: inclusive forwards, exclusive backwards. */
const ofLog = (node: Node, options: streams.ReadReq.Options): Array<Recorded> => {
  const { log } = node
  const all = options.getAll()
  const position = all?.getPosition()
  const count = Number(BigInt.asUintN(53, BigInt(options.getCount())))
  const filtered = options.hasFilter()
  if (options.getReadDirection() === BACKWARDS) {
    const end = all?.hasStart() ? 0 : position === undefined ? log.all.length : log.firstAfter(BigInt(position.getCommitPosition()) - 1n)
    return log.all.slice(filtered ? 0 : Math.max(0, end - count), end).toReversed()
  }
  if (all?.hasEnd()) return []
  const first = position === undefined ? 0 : log.firstAfter(BigInt(position.getCommitPosition()) - 1n)
  return log.all.slice(first, filtered ? undefined : first + count)
}

const send = (call: Read, events: ReadonlyArray<Recorded>): void => {
  let next = 0
  const pump = () => {
    for (;;) {
      const event = events[next++]
      if (call.cancelled) return
      if (event === undefined) return void call.end()
      if (!call.write(readEventOf(event))) return void call.once("drain", pump)
    }
  }
  pump()
}

/** A subscription: sends the present events, then later ones, and checkpoints for events that the filter excludes. */
const follow = (node: Node, call: Read, options: streams.ReadReq.Options, name: string | undefined, filter: Filter | undefined): void => {
  const { log } = node
  const confirmation = new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(call.getPeer())
  call.write(new streams.ReadResp().setConfirmation(confirmation))
  const next = name === undefined ? alongLog(node, options) : alongStream(node, name, options)
  let looked = 0
  let isAtEnd = false
  let isLive = false
  let beforeCaughtUp = node.faults.beforeCaughtUp
  let isFull = false
  const write = (response: streams.ReadResp) => {
    if (!call.write(response)) isFull = true
  }
  const sayCaughtUp = () => {
    // Never sent for a stream that does not exist
    if (isLive || beforeCaughtUp > 0 || (name !== undefined && !log.exists(name))) return
    isLive = true
    write(new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()))
  }
  const pump = () => {
    while (!isFull && !call.cancelled && !node.isMute(call)) {
      const event = next()
      if (event === undefined) {
        isAtEnd = true
        sayCaughtUp()
        return
      }
      if (filter?.passes(event) ?? true) write(readEventOf(event))
      if (isAtEnd) beforeCaughtUp--
      if (filter !== undefined && ++looked % filter.interval === 0) {
        const position = event.position.toString()
        node.checkpointed = event.position
        const checkpoint = new streams.ReadResp.Checkpoint().setCommitPosition(position).setPreparePosition(position)
        write(new streams.ReadResp().setCheckpoint(checkpoint))
      }
    }
  }
  call.on("drain", () => {
    isFull = false
    pump()
  })
  const stop = log.watch(pump)
  for (const end of ["cancelled", "close", "finish", "error"] as const) call.on(end, stop)
  pump()
}

/** The events after a position. */
const alongLog = (node: Node, options: streams.ReadReq.Options): (() => Recorded | undefined) => {
  const { log } = node
  const all = options.getAll()
  const position = all?.getPosition()
  node.subscribedFrom.push(BigInt(position?.getCommitPosition() ?? 0))
  let index = all?.hasEnd() ? log.all.length : position === undefined ? 0 : log.firstAfter(BigInt(position.getCommitPosition()))
  return () => {
    const event = log.all[index]
    if (event !== undefined) index++
    return event
  }
}

const alongStream = ({ log }: Node, name: string, options: streams.ReadReq.Options): (() => Recorded | undefined) => {
  const stream = options.getStream()
  let seen = stream?.hasEnd() ? log.last(name) : stream === undefined || stream.hasStart() ? -1n : BigInt(stream.getRevision())
  return () => {
    if (log.last(name) <= seen) return undefined
    const event = log.visible(name).find(({ revision }) => revision > seen)
    if (event !== undefined) seen = event.revision
    return event
  }
}
