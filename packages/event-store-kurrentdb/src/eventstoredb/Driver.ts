/** The driver on `@eventstore/db-client`: every call of the protocol that the store makes, each cancelled when nobody waits any more. */
import type { Readable } from "node:stream"
import type persistent from "@eventstore/db-client/generated/persistent_pb.js"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import { Effect } from "effect"
import type { Connection } from "../ConnectionString.ts"
import { type Appended, type Driver, Fault } from "../Driver.ts"
import { open } from "./Client.ts"
import { faultOf } from "./Fault.ts"
import * as Messages from "./Messages.ts"

interface Call {
  readonly cancel: () => void
}

const cancelledWith = (signal: AbortSignal, call: Call): void => {
  if (signal.aborted) call.cancel()
  else signal.addEventListener("abort", () => call.cancel(), { once: true })
}

const ended = new Fault({ kind: "noAnswer", message: "The subscription ended" })

/** `deadline`: milliseconds for each call that is not meant to last. */
export const connect = (connection: Connection, deadline: number): Driver => {
  const client = open(connection, deadline)

  const calling = <A>(start: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, Fault> =>
    Effect.tryPromise({ try: start, catch: faultOf })

  /** One answer to one question. */
  const asking = <Response>(start: (answer: (error: Error | null, response: Response) => void) => Call, signal: AbortSignal) =>
    new Promise<Response>((resolve, reject) => {
      cancelledWith(
        signal,
        start((error, response) => (error === null ? resolve(response) : reject(error)))
      )
    })

  const append: Driver["append"] = (stream, expected, events) =>
    Effect.flatMap(
      calling((signal) =>
        client.streams((service) =>
          asking<streams.AppendResp>((answer) => {
            const call = service.append(...client.along(deadline), answer)
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
        client.streams(
          (service) =>
            new Promise<ReadonlyArray<streams.ReadResp>>((resolve, reject) => {
              const call = service.read(request, ...client.along(deadline))
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
      client.streams((service) => {
        const call = service.read(Messages.follow(after, filter), ...client.along())
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
      client.persistentSubscriptions((service) => {
        const call = service.read(...client.along())
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
          take({
            _tag: "delivery",
            event,
            retries: delivered.getRetryCount(),
            // What is not settled comes again
            settle: (how, reason = "") => {
              if (!isOver && !signal.aborted) call.write(Messages.settle(event.id, how, reason))
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
          client.persistentSubscriptions((service) =>
            asking<persistent.CreateResp>(
              (answer) => service.create(Messages.createGroup(group, settings), ...client.along(deadline), answer),
              signal
            )
          )
        )
      ),
    groupInfo: (group) =>
      Effect.map(
        calling((signal) =>
          client.persistentSubscriptions((service) =>
            asking<persistent.GetInfoResp>(
              (answer) => service.getInfo(Messages.groupInfo(group), ...client.along(deadline), answer),
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
          client.persistentSubscriptions((service) =>
            asking<persistent.ReplayParkedResp>(
              (answer) => service.replayParked(Messages.replayParked(group), ...client.along(deadline), answer),
              signal
            )
          )
        )
      ),
    consume,
    close: () => client.close()
  }
}
