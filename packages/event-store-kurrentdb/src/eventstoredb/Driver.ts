/**
 * The driver that uses the messages of `@eventstore/db-client`. It makes the calls of the protocol that the store needs. Interrupting the
 * fiber of a call cancels the call.
 */

import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import type { ClientWritableStream } from "@grpc/grpc-js"
import { EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Connection } from "../ConnectionString.ts"
import { type Appended, type Driver, Fault, type Message, type Recorded } from "../Driver.ts"
import { NoBatchCall } from "./AppendStream.ts"
import { cancelledWith } from "./Cancelling.ts"
import { type Calls, Client } from "./Client.ts"
import { batchFaultOf, faultOf } from "./Fault.ts"
import * as Messages from "./Messages.ts"

const { StreamsService } = streamsService

/** Connects at the first call. `deadline`: milliseconds for each call except {@link Driver.follow}. */
export const connect = (connection: Connection, deadline: number): Driver => {
  const client = new Client(connection, deadline)
  return {
    append: (stream, expected, events) => append(client, { stream, expected, events }),
    readStream: (stream, direction, from, count) => read(client, Messages.readStream(stream, direction, from, count)),
    readLog: (direction, from, count) => read(client, Messages.readLog(direction, from, count)),
    follow: (after, filter, take) => follow(client, Messages.follow(after, filter), take),
    close: () => client.close()
  }
}

type Start<A> = (
  calls: Calls,
  resolve: (answer: A) => void,
  reject: (error: Error) => void,
  signal: AbortSignal
) => { readonly cancel: () => void }

/** Makes a call, and cancels it on interruption. */
const calling = <A>(client: Client, start: Start<A>): Effect.Effect<A, Fault> =>
  Effect.tryPromise({
    try: (signal) =>
      client.on(
        (calls) =>
          new Promise<A>((resolve, reject) => {
            signal.throwIfAborted()
            cancelledWith(signal, start(calls, resolve, reject, signal))
          })
      ),
    catch: faultOf
  })

/** The most characters of an append by the batch call. A larger one has a call of its own, so that no small one waits behind it. */
const SMALL = 64 * 1024

/** By the batch call. A large append has a call of its own, and so has each append at a node that has no batch call. */
const append = (client: Client, request: Messages.Append): Effect.Effect<Appended, Fault> =>
  Effect.flatMap(
    Effect.tryPromise({ try: (signal) => client.on((calls) => appendOn(calls, request, signal)), catch: faultOf }),
    (appended) => {
      if (appended === undefined) return Effect.fail(new Fault({ kind: "noAnswer", message: "The answer to the append is empty" }))
      if ("error" in appended) return Effect.fail(batchFaultOf(appended.error))
      if (!("actual" in appended)) return Effect.succeed(appended)
      return Effect.fail(new Fault({ kind: "wrongRevision", message: "Wrong revision", actual: appended.actual }))
    }
  )

const appendOn = async (calls: Calls, request: Messages.Append, signal: AbortSignal) => {
  signal.throwIfAborted()
  if (calls.appends === undefined || EventStore.appendChars(request.events) > SMALL)
    return Messages.appendedOf(await appendAlone(calls, request, signal))
  try {
    return Messages.batchAppendedOf(await calls.appends.send(request, signal))
  } catch (error) {
    if (!(error instanceof NoBatchCall)) throw error
    calls.appends = undefined
    return Messages.appendedOf(await appendAlone(calls, request, signal))
  }
}

const appendAlone = (calls: Calls, request: Messages.Append, signal: AbortSignal): Promise<streams.AppendResp> =>
  new Promise((resolve, reject) => {
    const call = calls.send(StreamsService.append, (error: Error | null, response?: streams.AppendResp) => {
      if (response === undefined) reject(error ?? new Error("The answer has no message"))
      else resolve(response)
    })
    // The callback was given the same error
    call.on("error", () => {})
    cancelledWith(signal, call)
    writeAll(call, Messages.append(request))
  })

/** Waits for `drain` when the connection is full: an append of hundreds of events that ignores `drain` is never answered. */
const writeAll = (call: ClientWritableStream<streams.AppendReq>, messages: ReadonlyArray<streams.AppendReq>): void => {
  let next = 0
  const pump = () => {
    for (;;) {
      const message = messages[next++]
      if (message === undefined) return void call.end()
      if (!call.write(message)) return void call.once("drain", pump)
    }
  }
  pump()
}

/** Collects the whole answer, so that the call has always ended when this ends. */
const read = (client: Client, request: streams.ReadReq): Effect.Effect<ReadonlyArray<Recorded>, Fault> => {
  const answer = calling<ReadonlyArray<streams.ReadResp>>(client, (calls, resolve, reject) => {
    const all: Array<streams.ReadResp> = []
    return calls
      .read(StreamsService.read, request)
      .on("data", (response: streams.ReadResp) => all.push(response))
      .on("error", reject)
      .on("end", () => resolve(all))
  })
  return Effect.map(answer, (responses) => responses.flatMap((response) => Messages.recordedOf(response) ?? []))
}

/** Never succeeds: the end of the answer also counts as a fault. */
const follow = (client: Client, request: streams.ReadReq, take: (message: Message) => void): Effect.Effect<never, Fault> =>
  calling<never>(client, (calls, _, reject, signal) =>
    calls
      .follow(StreamsService.read, request)
      .on("data", (response: streams.ReadResp) => {
        const message = signal.aborted ? undefined : Messages.messageOf(response)
        if (message !== undefined) take(message)
      })
      .on("error", reject)
      .on("end", () => reject(new Fault({ kind: "noAnswer", message: "The subscription ended" })))
  )
