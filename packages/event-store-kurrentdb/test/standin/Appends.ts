/** Unary and batch appends, and the two ways to delete a stream. */
import {
  status as Code,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleUnaryCall,
  type ServiceError,
  type sendUnaryData
} from "@grpc/grpc-js"
import type { AppendCall } from "./Faults.ts"
import type { Expected, Outcome, Proposed } from "./Log.ts"
import {
  type ExpectedOptions,
  empty,
  expectedOf,
  failure,
  handlerThrew,
  identifierOf,
  idOf,
  MAX_APPEND,
  nameOf,
  notReady,
  proposedOf,
  streamDeleted,
  tooLarge,
  wrongVersion
} from "./Messages.ts"
import type { Node } from "./Node.ts"
import { any, empty as emptyMessage, shared, status, streams } from "./Protocol.ts"

/** The answer to an append. */
type Answer = Outcome | { readonly _tag: "refused"; readonly error: ServiceError } | { readonly _tag: "tooLarge" }

/** `events` holds undefined for each event that no server accepts. */
const take = (
  node: Node,
  peer: string,
  request: Omit<AppendCall, "events"> & { readonly events: ReadonlyArray<Proposed | undefined> },
  answer: (answer: Answer) => void
): void => {
  const events = request.events.filter((event) => event !== undefined)
  if (request.stream === "" || events.length < request.events.length) return answer({ _tag: "refused", error: handlerThrew() })
  if (events.reduce((sum, { type, data, metadata }) => sum + type.length + data.length + metadata.length, 0) > MAX_APPEND)
    return answer({ _tag: "tooLarge" })
  const { stream, expected } = request
  const write = () => node.log.append(stream, expected, events, node.now())
  const fault = node.faults.append({ ...request, events })
  switch (fault) {
    case undefined:
      return answer(write())
    case "lost":
      return
    case "unanswered":
      write()
      return
    case "dropBefore":
      return node.drop(peer)
    case "dropAfter":
      write()
      return node.drop(peer)
    case "notReady":
      return answer({ _tag: "refused", error: notReady() })
    case "late":
      return node.faults.keep(() => answer(write()))
    default:
      return answer({ _tag: "refused", error: failure(fault.code, fault.details) })
  }
}

/** Append: one call for each. */
export const append =
  (node: Node): handleClientStreamingCall<streams.AppendReq, streams.AppendResp> =>
  (call, respond) => {
    const refusal = node.admit("Append", call)
    let options: streams.AppendReq.Options | undefined
    const events: Array<Proposed | undefined> = []
    call.on("error", () => {})
    call.on("data", (request: streams.AppendReq) => {
      const message = request.getProposedMessage()
      if (message === undefined) options = request.getOptions()
      else events.push(proposedOf(message))
    })
    call.on("end", () => {
      if (refusal !== undefined) return respond(refusal)
      if (options === undefined) return respond(handlerThrew())
      const { stream, expected } = { stream: nameOf(options.getStreamIdentifier()), expected: expectedOf(options, revisionOf(options)) }
      take(node, call.getPeer(), { path: "unary", stream, expected, events }, (answer) => answerUnary(stream, expected, answer, respond))
    })
  }

const revisionOf = (options: { readonly getRevision: () => string }) => () => options.getRevision()

const answerUnary = (stream: string, expected: Expected, answer: Answer, respond: sendUnaryData<streams.AppendResp>): void => {
  switch (answer._tag) {
    case "refused":
      return respond(answer.error)
    case "tooLarge":
      return respond(tooLarge())
    case "deleted":
      return respond(streamDeleted(stream))
    case "wrongVersion": {
      const wrong = new streams.AppendResp.WrongExpectedVersion()
      if (expected === "any") wrong.setExpectedAny(empty())
      else if (expected === "streamExists") wrong.setExpectedStreamExists(empty())
      else if (expected === "noStream") wrong.setExpectedNoStream(empty())
      else wrong.setExpectedRevision(expected.toString())
      if (answer.actual === "noStream") wrong.setCurrentNoStream(empty())
      else wrong.setCurrentRevision(answer.actual.toString())
      return respond(null, new streams.AppendResp().setWrongExpectedVersion(wrong))
    }
    case "appended": {
      const success = new streams.AppendResp.Success()
      if (answer.revision < 0n) success.setNoStream(empty())
      else success.setCurrentRevision(answer.revision.toString())
      if (answer.position === undefined) success.setNoPosition(empty())
      else {
        const text = answer.position.toString()
        success.setPosition(new streams.AppendResp.Position().setCommitPosition(text).setPreparePosition(text))
      }
      return respond(null, new streams.AppendResp().setSuccess(success))
    }
  }
}

interface Batch {
  readonly options: streams.BatchAppendReq.Options
  readonly events: Array<Proposed | undefined>
}

/** BatchAppend: one call for all appends of a client, identified by correlation ids. */
export const batchAppend =
  (node: Node): handleBidiStreamingCall<streams.BatchAppendReq, streams.BatchAppendResp> =>
  (call) => {
    const refusal = node.admit("BatchAppend", call)
    node.opened("BatchAppend", call)
    call.on("error", () => {})
    if (refusal !== undefined) return void call.emit("error", refusal)
    const open = new Map<string, Batch>()
    call.on("data", (request: streams.BatchAppendReq) => {
      const id = idOf(request.getCorrelationId()) ?? ""
      const options = request.getOptions()
      if (options !== undefined) open.set(id, { options, events: [] })
      const batch = open.get(id)
      if (batch === undefined) return
      for (const message of request.getProposedMessagesList()) batch.events.push(proposedOf(message))
      if (!request.getIsFinal()) return
      open.delete(id)
      const stream = nameOf(batch.options.getStreamIdentifier())
      const expected = expectedOf(batch.options, () => batch.options.getStreamPosition())
      const respond = (answer: Answer | "timeout") => {
        if (call.cancelled) return
        const response = answerBatch(stream, expected, answer)
        call.write(response.setCorrelationId(request.getCorrelationId()).setStreamIdentifier(identifierOf(stream)))
      }
      // The client sets the deadline by its own clock; the server compares it with the server's clock
      const deadline = batch.options.getDeadline()?.toDate().getTime() ?? Number.POSITIVE_INFINITY
      if (deadline < node.now() + node.faults.clockAhead) return respond("timeout")
      take(node, call.getPeer(), { path: "batch", stream, expected, events: batch.events }, respond)
    })
    call.on("end", () => call.end())
  }

const FAILED_PRECONDITION = 9

const packed = (name: string, message: { readonly serializeBinary: () => Uint8Array }) => {
  const details = new any.Any()
  details.pack(message.serializeBinary(), `event_store.client.${name}`)
  return details
}

const errorOf = (message: string, details: InstanceType<typeof any.Any>) =>
  new streams.BatchAppendResp().setError(new status.Status().setCode(FAILED_PRECONDITION).setMessage(message).setDetails(details))

/** What the server did not do, or an error that does not tell what it did. */
const reasonOf = ({ code, details }: ServiceError) => {
  if (code === Code.PERMISSION_DENIED) return packed("AccessDenied", new shared.AccessDenied())
  if (code === Code.INVALID_ARGUMENT) return packed("BadRequest", new shared.BadRequest().setMessage(details))
  return packed("Unknown", new shared.Unknown())
}

const answerBatch = (stream: string, expected: Expected, answer: Answer | "timeout"): streams.BatchAppendResp => {
  if (answer === "timeout") return errorOf("Timeout", packed("Timeout", new shared.Timeout()))
  switch (answer._tag) {
    case "refused":
      return errorOf(answer.error.details, reasonOf(answer.error))
    case "tooLarge":
      return errorOf(
        "Maximum Append Size Exceeded",
        packed("MaximumAppendSizeExceeded", new shared.MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND))
      )
    case "deleted":
      return errorOf("Stream deleted", packed("StreamDeleted", new shared.StreamDeleted().setStreamIdentifier(identifierOf(stream))))
    case "wrongVersion": {
      const wrong = new shared.WrongExpectedVersion()
      if (expected === "any") wrong.setExpectedAny(new emptyMessage.Empty())
      else if (expected === "streamExists") wrong.setExpectedStreamExists(new emptyMessage.Empty())
      else if (expected === "noStream") wrong.setExpectedNoStream(new emptyMessage.Empty())
      else wrong.setExpectedStreamPosition(expected.toString())
      if (answer.actual === "noStream") wrong.setCurrentNoStream(new emptyMessage.Empty())
      else wrong.setCurrentStreamRevision(answer.actual.toString())
      return errorOf("Wrong expected version", packed("WrongExpectedVersion", wrong))
    }
    case "appended": {
      const success = new streams.BatchAppendResp.Success()
      if (answer.revision < 0n) success.setNoStream(new emptyMessage.Empty())
      else success.setCurrentRevision(answer.revision.toString())
      if (answer.position === undefined) success.setNoPosition(new emptyMessage.Empty())
      else {
        const text = answer.position.toString()
        success.setPosition(new shared.AllStreamPosition().setCommitPosition(text).setPreparePosition(text))
      }
      return new streams.BatchAppendResp().setSuccess(success)
    }
  }
}

interface DeleteOptions extends ExpectedOptions {
  readonly getStreamIdentifier: () => shared.StreamIdentifier | undefined
  readonly getRevision: () => string
}

/** Deletes a stream at its expected revision. Returns the position or an error. */
const remove = (
  node: Node,
  operation: string,
  options: DeleteOptions | undefined,
  apply: (stream: string) => bigint
): string | ServiceError => {
  if (options === undefined) return handlerThrew()
  const stream = nameOf(options.getStreamIdentifier())
  const expected = expectedOf(options, revisionOf(options))
  if (node.log.isTombstoned(stream)) return streamDeleted(stream)
  const last = node.log.last(stream)
  const isWrong =
    expected === "any" ? false : expected === "streamExists" ? last < 0n : expected === "noStream" ? last >= 0n : expected !== last
  if (isWrong) return wrongVersion(operation, stream, typeof expected === "bigint" ? expected.toString() : "-1", last)
  return apply(stream).toString()
}

export const deleteStream =
  (node: Node): handleUnaryCall<streams.DeleteReq, streams.DeleteResp> =>
  (call, respond) => {
    const refusal = node.admit("Delete", call)
    if (refusal !== undefined) return respond(refusal)
    const removed = remove(node, "Delete", call.request.getOptions(), (stream) => node.log.delete(stream))
    if (typeof removed !== "string") return respond(removed)
    const position = new streams.DeleteResp.Position().setCommitPosition(removed).setPreparePosition(removed)
    respond(null, new streams.DeleteResp().setPosition(position))
  }

export const tombstone =
  (node: Node): handleUnaryCall<streams.TombstoneReq, streams.TombstoneResp> =>
  (call, respond) => {
    const refusal = node.admit("Tombstone", call)
    if (refusal !== undefined) return respond(refusal)
    const removed = remove(node, "Tombstone", call.request.getOptions(), (stream) => node.log.tombstone(stream))
    if (typeof removed !== "string") return respond(removed)
    const position = new streams.TombstoneResp.Position().setCommitPosition(removed).setPreparePosition(removed)
    respond(null, new streams.TombstoneResp().setPosition(position))
  }
