/**
 * The driver that uses the messages of `@eventstore/db-client`. It makes the calls of the protocol that the store needs. Interrupting the
 * fiber of a call cancels the call.
 */

import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import type { ClientWritableStream } from "@grpc/grpc-js"
import { Effect } from "effect"
import type { Connection } from "../ConnectionString.ts"
import { type Appended, type Driver, Fault, type Message, type Recorded } from "../Driver.ts"
import { type Calls, Client, cancelledWith } from "./Client.ts"
import { faultOf } from "./Fault.ts"
import * as Messages from "./Messages.ts"

const { StreamsService } = streamsService

/** Connects at the first call. `deadline`: milliseconds for each call except {@link Driver.follow}. */
export const connect = (connection: Connection, deadline: number): Driver => {
  const client = new Client(connection, deadline)
  return {
    append: (stream, expected, events) => append(client, [Messages.appendHeader(stream, expected), ...events.map(Messages.appendEvent)]),
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

const append = (client: Client, messages: ReadonlyArray<streams.AppendReq>): Effect.Effect<Appended, Fault> => {
  const answer = calling<streams.AppendResp>(client, (calls, resolve, reject) => {
    const call = calls.send(StreamsService.append, (error: Error | null, response?: streams.AppendResp) => {
      if (response === undefined) reject(error ?? new Error("The answer has no message"))
      else resolve(response)
    })
    // The callback was given the same error
    call.on("error", () => {})
    writeAll(call, messages)
    return call
  })
  return Effect.flatMap(answer, (response) => {
    const appended = Messages.appendedOf(response)
    if (appended === undefined) return Effect.fail(new Fault({ kind: "noAnswer", message: "The answer to the append is empty" }))
    if (!("actual" in appended)) return Effect.succeed(appended)
    return Effect.fail(new Fault({ kind: "wrongRevision", message: "Wrong revision", actual: appended.actual }))
  })
}

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
