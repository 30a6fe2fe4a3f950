/** An operation of the workload with its services provided and faults injected into its upstream. */
import { type Operation, type OperationError, UpstreamUnavailable } from "@millrace/core"
import { type Context, Duration, Effect, Schema } from "effect"
import { faultyJob } from "./FaultyJob.ts"
import { callFaults, type FaultInjector, inject, provideAllButHost } from "./UpstreamFaults.ts"
import type { HostServices, Input, SimulatedOperation } from "./Workload.ts"
import type { Process } from "./World.ts"

/** `process`: the host that runs it. */
export const make = (
  operation: Operation.Any,
  services: Context.Context<never>,
  injector: FaultInjector,
  process: Process
): SimulatedOperation => {
  const provided = {
    check: (input: Input, requester: Operation.Requester) => provideAllButHost(operation.check(input, requester), services),
    configured: provideAllButHost(operation.configured, services)
  }
  switch (operation._tag) {
    case "Call":
      return { ...operation, ...provided, ...faultyCall(operation, services, injector) }
    case "Job":
      return { ...operation, ...provided, run: faultyJob(operation, services, injector, process) }
    case "File":
      return { ...operation, ...provided, open: (input, caller) => provideAllButHost(operation.open(input, caller), services) }
  }
}

type SimulatedCall = Operation.AnyCall<OperationError, HostServices>

const faultyCall = (
  operation: Operation.AnyCall,
  services: Context.Context<never>,
  injector: FaultInjector
): Pick<SimulatedCall, "run" | "recover"> => {
  const { key, recover } = operation
  const run = faultyRun(operation, services, injector, Duration.toMillis(operation.timeout))
  return recover === undefined ? { run } : { run, recover: faultyRecover(key, recover, services, injector) }
}

const faultyRun = (
  operation: Operation.AnyCall,
  services: Context.Context<never>,
  injector: FaultInjector,
  timeout: number
): SimulatedCall["run"] => {
  const { delivered, random: randoms, rate, world } = injector
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(operation.success))
  return (input, caller) =>
    Effect.suspend((): Effect.Effect<Operation.Outcome<unknown>, OperationError, HostServices> => {
      const { requestId, reservationId } = caller
      const random = randoms.fork(requestId)
      const fault = random.chance(rate()) ? random.pick(callFaults) : "fine"
      const upstream = operation.key
      const takes = random.chance(0.2) ? random.below(timeout) : random.below(40)
      world.note(upstream, `runs ${requestId}: ${fault}`)
      const work = provideAllButHost(operation.run(input, caller), services)
      const deliver = Effect.tap(Effect.delay(work, takes), ({ data, quantity }) =>
        Effect.sync(() => delivered({ requestId, reservationId, data: JSON.stringify(encode(data)), quantity }))
      )
      if (fault === "fine") return deliver
      const ignores = () => timeout + random.below(90_000)
      return inject(fault, { upstream, deliver, random, takes, timeout, ignores, tooMany: operation.quantity(input) + 1 })
    })
}

const faultyRecover = (
  key: string,
  recover: NonNullable<Operation.AnyCall["recover"]>,
  services: Context.Context<never>,
  { random: randoms, rate, world }: FaultInjector
): NonNullable<SimulatedCall["recover"]> => {
  let asked = 0
  return (reservationId) =>
    Effect.suspend((): Effect.Effect<Operation.Outcome<unknown> | undefined, OperationError, HostServices> => {
      const random = randoms.fork(`${reservationId} ${asked++}`)
      const fails = random.chance(rate() / 2)
      const hangs = random.chance(0.3)
      world.note(key, `recovers ${reservationId}${fails ? (hangs ? ": hangs" : ": down") : ""}`)
      if (fails && hangs) return Effect.never
      if (fails) return Effect.fail(new UpstreamUnavailable({ upstream: key, reason: "down" }))
      return Effect.delay(provideAllButHost(recover(reservationId), services), random.below(100))
    })
}
