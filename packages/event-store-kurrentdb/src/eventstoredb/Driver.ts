/**
 * The driver on the messages of `@eventstore/db-client`: the calls of the protocol that the store makes. A call is cancelled when the
 * fiber that waits for it is interrupted.
 */

import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import type { ClientWritableStream } from "@grpc/grpc-js"
import { Effect } from "effect"
import type { Connection } from "../ConnectionString.ts"
import { type Appended, type Driver, Fault, type Message, type Recorded } from "../Driver.ts"
import { Client, cancelledWith } from "./Client.ts"
import { faultOf } from "./Fault.ts"
import * as Messages from "./Messages.ts"

const { StreamsService } = streamsService

/** Opens no connection before the first call. `deadline`: milliseconds for each call but {@link Driver.follow}. */
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

const calling = <A>(start: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, Fault> =>
  Effect.tryPromise({ try: start, catch: faultOf })

const append = (client: Client, messages: ReadonlyArray<streams.AppendReq>): Effect.Effect<Appended, Fault> =>
  Effect.flatMap(
    calling((signal) =>
      client.on(
        (calls) =>
          new Promise<streams.AppendResp>((resolve, reject) => {
            const call = calls.send(StreamsService.append, (error: Error | null, response?: streams.AppendResp) => {
              if (response === undefined) reject(error ?? new Error("An answer without a message"))
              else resolve(response)
            })
            cancelledWith(signal, call)
            // The callback was given the same error
            call.on("error", () => {})
            writeAll(call, messages)
          })
      )
    ),
    (response) => {
      const appended = Messages.appendedOf(response)
      if (appended === undefined) return Effect.fail(new Fault({ kind: "noAnswer", message: "The answer to the append is empty" }))
      if (!("actual" in appended)) return Effect.succeed(appended)
      return Effect.fail(new Fault({ kind: "wrongRevision", message: "Wrong revision", actual: appended.actual }))
    }
  )

/** Writes no faster than the connection takes it: an append of hundreds of events that ignores `drain` is never answered. */
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

/** Collects the whole answer, so that the call is over when this ends, however it ends. */
const read = (client: Client, request: streams.ReadReq): Effect.Effect<ReadonlyArray<Recorded>, Fault> =>
  Effect.map(
    calling((signal) =>
      client.on(
        (calls) =>
          new Promise<ReadonlyArray<streams.ReadResp>>((resolve, reject) => {
            const call = calls.read(StreamsService.read, request)
            const all: Array<streams.ReadResp> = []
            call.on("data", (response: streams.ReadResp) => all.push(response))
            call.on("error", reject)
            call.on("end", () => resolve(all))
            cancelledWith(signal, call)
          })
      )
    ),
    (responses) => responses.flatMap((response) => Messages.recordedOf(response) ?? [])
  )

/** Never succeeds: the end of the answer is a fault, too. */
const follow = (client: Client, request: streams.ReadReq, take: (message: Message) => void): Effect.Effect<never, Fault> =>
  calling((signal) =>
    client.on(
      (calls) =>
        new Promise<never>((_, reject) => {
          const call = calls.follow(StreamsService.read, request)
          call.on("data", (response: streams.ReadResp) => {
            const message = signal.aborted ? undefined : Messages.messageOf(response)
            if (message !== undefined) take(message)
          })
          call.on("error", reject)
          call.on("end", () => reject(new Fault({ kind: "noAnswer", message: "The subscription ended" })))
          cancelledWith(signal, call)
        })
    )
  )
