/** The driver on the messages of `@eventstore/db-client`: every call of the protocol that the store makes, each cancelled when nobody waits any more. */
import type { Readable } from "node:stream"
import persistentService from "@eventstore/db-client/generated/persistent_grpc_pb.js"
import type persistent from "@eventstore/db-client/generated/persistent_pb.js"
import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import { Effect } from "effect"
import type { Connection } from "../ConnectionString.ts"
import { type Appended, type Driver, Fault } from "../Driver.ts"
import { Client, cancelledWith, type Tell } from "./Client.ts"
import { faultOf } from "./Fault.ts"
import * as Messages from "./Messages.ts"

interface Call {
  readonly cancel: () => void
}

const { StreamsService } = streamsService
const { PersistentSubscriptionsService } = persistentService

const ended = new Fault({ kind: "noAnswer", message: "The subscription ended" })

/** `deadline`: milliseconds for each call that is not meant to last. */
export const connect = (connection: Connection, deadline: number): Driver => {
  const client = new Client(connection, deadline)

  const calling = <A>(start: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, Fault> =>
    Effect.tryPromise({ try: start, catch: faultOf })

  /** One answer to one question. */
  const asking = <Response>(start: (tell: Tell<Response>) => Call, signal: AbortSignal) =>
    new Promise<Response>((resolve, reject) => {
      const tell: Tell<Response> = (error, response) => {
        if (response === undefined) reject(error ?? new Error("An answer without a message"))
        else resolve(response)
      }
      cancelledWith(signal, start(tell))
    })

  const append: Driver["append"] = (stream, expected, events) =>
    Effect.flatMap(
      calling((signal) =>
        client.on((calls) =>
          asking<streams.AppendResp>((tell) => {
            const call = calls.send(StreamsService.append, tell)
            // Told to the one who asked already
            call.on("error", () => {})
            const messages = [Messages.appendHeader(stream, expected), ...events.map(Messages.appendEvent)]
            let next = 0
            // As fast as it is taken and no faster: hundreds written in one go are never answered
            const pump = () => {
              for (;;) {
                const message = messages[next++]
                if (message === undefined) return void call.end()
                if (!call.write(message)) return void call.once("drain", pump)
              }
            }
            pump()
            return call
          }, signal)
        )
      ),
      (response): Effect.Effect<Appended, Fault> => {
        const appended = Messages.appendedOf(response)
        if (appended === undefined) return Effect.fail(new Fault({ kind: "noAnswer", message: "An answer that says nothing" }))
        return "actual" in appended
          ? Effect.fail(new Fault({ kind: "wrongRevision", message: "Wrong revision", actual: appended.actual }))
          : Effect.succeed(appended)
      }
    )

  /** All that is read, however it ends: the call is over when this is. */
  const reading = (request: streams.ReadReq) =>
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
      (responses) =>
        responses.flatMap((response) => {
          const event = response.getEvent()
          return (event && Messages.recordedOf(event)) ?? []
        })
    )

  /** Messages for ever: an end is a fault, too. */
  const lasting = (call: Readable & Call, signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      call.on("error", reject)
      call.on("end", () => reject(ended))
      cancelledWith(signal, call)
    })

  const follow: Driver["follow"] = (after, filter, take) =>
    calling((signal) =>
      client.on((calls) => {
        const call = calls.follow(StreamsService.read, Messages.follow(after, filter))
        call.on("data", (response: streams.ReadResp) => {
          if (signal.aborted) return
          const event = response.getEvent()
          const recorded = event && Messages.recordedOf(event)
          const checkpoint = response.getCheckpoint()
          const position = checkpoint && Messages.positionOf(checkpoint)
          if (recorded !== undefined) take({ _tag: "event", event: recorded })
          else if (position !== undefined) take({ _tag: "checkpoint", position })
          else if (response.hasConfirmation()) take({ _tag: "confirmed" })
        })
        return lasting(call, signal)
      })
    )

  const consume: Driver["consume"] = (group, atOnce, take) =>
    calling((signal) =>
      client.on((calls) => {
        const call = calls.converse(PersistentSubscriptionsService.read)
        let isOver = false
        const over = () => {
          isOver = true
        }
        call.on("error", over)
        call.on("end", over)
        call.on("data", (response: persistent.ReadResp) => {
          if (signal.aborted) return
          if (response.hasSubscriptionConfirmation()) return take({ _tag: "confirmed" })
          const delivered = response.getEvent()
          const event = delivered && Messages.recordedOf(delivered)
          if (delivered === undefined || event === undefined) return
          // A replayed event is delivered through a link, and the server knows the delivery by the id of that link
          const settledBy = delivered.getLink()?.getId()?.getString() ?? event.id
          take({
            _tag: "delivery",
            event,
            retries: delivered.getRetryCount(),
            // What is not settled comes again
            settle: (how, reason = "") => {
              if (!isOver && !signal.aborted) call.write(Messages.settle(settledBy, how, reason))
            }
          })
        })
        call.write(Messages.consume(group, atOnce))
        return lasting(call, signal)
      })
    )

  return {
    append,
    readStream: (stream, direction, from, count, resolveLinks = false) =>
      reading(Messages.readStream(stream, direction, from, count, resolveLinks)),
    readLog: (direction, from, count) => reading(Messages.readLog(direction, from, count)),
    follow,
    createGroup: (group, settings) =>
      Effect.asVoid(
        calling((signal) =>
          client.on((calls) =>
            asking<persistent.CreateResp>(
              (tell) => calls.ask(PersistentSubscriptionsService.create, Messages.createGroup(group, settings), tell),
              signal
            )
          )
        )
      ),
    groupInfo: (group) =>
      Effect.map(
        calling((signal) =>
          client.on((calls) =>
            asking<persistent.GetInfoResp>(
              (tell) => calls.ask(PersistentSubscriptionsService.getInfo, Messages.groupInfo(group), tell),
              signal
            )
          )
        ),
        (response) => {
          const info = response.getSubscriptionInfo()
          return { parked: Number(info?.getParkedMessageCount() ?? 0), inFlight: info?.getTotalInFlightMessages() ?? 0 }
        }
      ),
    replayParked: (group) =>
      Effect.asVoid(
        calling((signal) =>
          client.on((calls) =>
            asking<persistent.ReplayParkedResp>(
              (tell) => calls.ask(PersistentSubscriptionsService.replayParked, Messages.replayParked(group), tell),
              signal
            )
          )
        )
      ),
    consume,
    close: () => client.close()
  }
}
