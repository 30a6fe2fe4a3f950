/** The service of persistent subscriptions: groups are created, consumed, looked at, replayed and deleted. */
import { status as Code, type handleBidiStreamingCall, type handleUnaryCall, type ServiceError } from "@grpc/grpc-js"
import { Schema } from "effect"
import { type Consumer, Group, keyOf, type Nack, type Settings, State } from "./Group.ts"
import { failure, handlerThrew, idOf, nameOf, record } from "./Messages.ts"
import type { Node } from "./Node.ts"
import { persistent, type shared } from "./Protocol.ts"

export type Groups = Map<string, Group>

/** Those that were there before the node was started. */
export const restored = (node: Node): Groups => {
  const groups: Groups = new Map()
  for (const [key, json] of node.log.groups) {
    const { settings, next } = Schema.decodeUnknownSync(State)(json)
    groups.set(key, new Group(node.log, node.now, settings, next))
  }
  return groups
}

const exception = (kind: string, code: Code, { stream, name }: Target): ServiceError =>
  failure(code, `Subscription group ${name} on stream ${stream ?? "$all"}: ${kind}.`, {
    exception: kind,
    "stream-name": stream ?? "$all",
    "group-name": name
  })

const missing = (target: Target) => exception("persistent-subscription-does-not-exist", Code.NOT_FOUND, target)

interface Target {
  readonly stream: string | undefined
  readonly name: string
}

interface TargetOptions {
  readonly hasAll: () => boolean
  readonly getStreamIdentifier: () => shared.StreamIdentifier | undefined
  readonly getGroupName: () => string
}

const targetOf = (options: TargetOptions): Target => ({
  stream: options.hasAll() ? undefined : nameOf(options.getStreamIdentifier()),
  name: options.getGroupName()
})

export const create =
  (node: Node, groups: Groups): handleUnaryCall<persistent.CreateReq, persistent.CreateResp> =>
  (call, respond) => {
    const refusal = node.admit("CreateGroup", call)
    const options = call.request.getOptions()
    const asked = options?.getSettings()
    if (refusal !== undefined) return respond(refusal)
    if (options === undefined || asked === undefined) return respond(handlerThrew())
    const all = options.getAll()
    const ofStream = options.getStream()
    const name = options.getGroupName()
    const stream = all === undefined ? nameOf((ofStream ?? options).getStreamIdentifier()) : undefined
    const key = keyOf(stream, name)
    if (groups.has(key)) return respond(exception("persistent-subscription-exists", Code.ALREADY_EXISTS, { stream, name }))
    const filter = all?.getFilter()
    const expression = filter?.getStreamIdentifier() ?? filter?.getEventType()
    const settings: Settings = {
      stream,
      name,
      maxRetries: asked.getMaxRetryCount(),
      messageTimeout: asked.hasMessageTimeoutMs() ? asked.getMessageTimeoutMs() : 30_000,
      checkpointAfter: asked.hasCheckpointAfterMs() ? asked.getCheckpointAfterMs() : 2_000,
      filter: expression && {
        by: filter?.hasStreamIdentifier() ? "stream" : "type",
        regex: expression.getRegex(),
        prefixes: expression.getPrefixList()
      }
    }
    const next = stream === undefined ? startInLog(node, all) : startInStream(node, stream, ofStream, asked.getRevision())
    groups.set(key, new Group(node.log, node.now, settings, next))
    node.log.saveGroup(key, Schema.encodeSync(State)({ settings, next }))
    respond(null, new persistent.CreateResp())
  }

const startInLog = ({ log }: Node, all: persistent.CreateReq.AllOptions | undefined): number => {
  if (all === undefined || all.hasStart()) return 0
  const position = all.getPosition()
  return position === undefined ? log.all.length : log.firstAfter(BigInt(position.getCommitPosition()) - 1n)
}

/** Clients of before 21.10, and those of today for streams, send the revision in the settings; all ones is the end. */
const startInStream = ({ log }: Node, name: string, stream: persistent.CreateReq.StreamOptions | undefined, revision: string): number => {
  const end = Number(log.last(name)) + 1
  if (stream?.hasStart()) return 0
  if (stream?.hasEnd()) return end
  const from = BigInt.asIntN(64, BigInt(stream?.getRevision() || revision || "0"))
  return from < 0n ? end : Number(from)
}

export const remove =
  (node: Node, groups: Groups): handleUnaryCall<persistent.DeleteReq, persistent.DeleteResp> =>
  (call, respond) => {
    const refusal = node.admit("DeleteGroup", call)
    const options = call.request.getOptions()
    if (refusal !== undefined) return respond(refusal)
    if (options === undefined) return respond(handlerThrew())
    const target = targetOf(options)
    const key = keyOf(target.stream, target.name)
    const group = groups.get(key)
    if (group === undefined) return respond(missing(target))
    groups.delete(key)
    group.end()
    respond(null, new persistent.DeleteResp())
  }

export const replayParked =
  (node: Node, groups: Groups): handleUnaryCall<persistent.ReplayParkedReq, persistent.ReplayParkedResp> =>
  (call, respond) => {
    const refusal = node.admit("ReplayParked", call)
    const options = call.request.getOptions()
    if (refusal !== undefined) return respond(refusal)
    if (options === undefined) return respond(handlerThrew())
    const target = targetOf(options)
    const group = groups.get(keyOf(target.stream, target.name))
    if (group === undefined) return respond(missing(target))
    group.replay()
    respond(null, new persistent.ReplayParkedResp())
  }

export const getInfo =
  (node: Node, groups: Groups): handleUnaryCall<persistent.GetInfoReq, persistent.GetInfoResp> =>
  (call, respond) => {
    const refusal = node.admit("GetInfo", call)
    const options = call.request.getOptions()
    if (refusal !== undefined) return respond(refusal)
    if (options === undefined) return respond(handlerThrew())
    const target = targetOf(options)
    const group = groups.get(keyOf(target.stream, target.name))
    if (group === undefined) return respond(missing(target))
    const info = new persistent.SubscriptionInfo()
      .setEventSource(target.stream ?? "$all")
      .setGroupName(target.name)
      .setStatus("Live")
      .setMaxRetryCount(group.settings.maxRetries)
      .setTotalInFlightMessages(group.inFlight)
      .setParkedMessageCount(group.parkedCount.toString())
      .setTotalItems("0")
      .setCountSinceLastMeasurement("0")
      .setLiveBufferCount("0")
    respond(null, new persistent.GetInfoResp().setSubscriptionInfo(info))
  }

export const consume =
  (node: Node, groups: Groups): handleBidiStreamingCall<persistent.ReadReq, persistent.ReadResp> =>
  (call) => {
    const refusal = node.admit("Consume", call)
    node.opened("Consume", call)
    call.on("error", () => {})
    const failing = refusal ?? node.failing(call, node.faults.subscribe())
    if (failing === "silent") return
    if (failing !== undefined) return void call.emit("error", failing)
    node.subscribed(call)
    let group: Group | undefined
    let consumer: Consumer | undefined
    call.on("data", (request: persistent.ReadReq) => {
      const options = request.getOptions()
      if (options !== undefined) {
        const target = targetOf(options)
        group = groups.get(keyOf(target.stream, target.name))
        if (group === undefined) return void call.emit("error", missing(target))
        const confirmation = new persistent.ReadResp.SubscriptionConfirmation().setSubscriptionId(group.key)
        call.write(new persistent.ReadResp().setSubscriptionConfirmation(confirmation))
        consumer = consumerOf(call, options.getBufferSize())
        group.join(consumer)
        return
      }
      if (group === undefined || consumer === undefined) return
      const ack = request.getAck()
      const nack = request.getNack()
      if (ack !== undefined) group.ack(consumer, idsOf(ack.getIdsList()))
      if (nack !== undefined) group.nack(consumer, idsOf(nack.getIdsList()), actionOf(nack.getAction()))
    })
    const leave = () => {
      if (group !== undefined && consumer !== undefined) group.leave(consumer)
      consumer = undefined
    }
    call.on("end", () => {
      leave()
      call.end()
    })
    for (const end of ["cancelled", "close", "error"] as const) call.on(end, leave)
  }

const consumerOf = (call: Parameters<ReturnType<typeof consume>>[0], bufferSize: number): Consumer => ({
  bufferSize,
  send: ({ event, link, retries }) => {
    const read = new persistent.ReadResp.ReadEvent()
      .setEvent(record(new persistent.ReadResp.ReadEvent.RecordedEvent(), event))
      .setCommitPosition((link ?? event).position.toString())
      .setRetryCount(retries)
    if (link !== undefined) read.setLink(record(new persistent.ReadResp.ReadEvent.RecordedEvent(), link))
    call.write(new persistent.ReadResp().setEvent(read))
  },
  end: (error) => call.emit("error", error)
})

const idsOf = (ids: ReadonlyArray<shared.UUID>) => ids.flatMap((id) => idOf(id) ?? [])

const RETRY = 2
const SKIP = 3

const actionOf = (action: number): Nack => (action === RETRY ? "retry" : action === SKIP ? "skip" : "park")
