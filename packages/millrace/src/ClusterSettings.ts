/** The settings of a host that is one of several on a store, of which one leads each account, and the layer that follows from them. */
import { type CallsInDoubt, Charge, ClusterAddress, type ClusterUnavailable, Leading, type MasterKey, type Operation } from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import { Layer, Option } from "effect"
import * as Setting from "./Setting.ts"

export const address: Setting.Kind<ClusterAddress.Address> = {
  metavar: "host:port",
  parse: ClusterAddress.parse,
  expected: ClusterAddress.EXPECTED
}

export const flags = {
  cluster: Setting.optional(
    "cluster",
    "Address and port at which the other hosts of the store reach this one; a call then runs at the host that leads its account. Each host runs its own calls when left out",
    address
  ),
  clusterListen: Setting.optional("cluster-listen", "Where this host listens for the others, if not at --cluster", Setting.hostAndPort)
}

export interface Settings {
  readonly cluster: Option.Option<ClusterAddress.Address>
  readonly clusterListen: Option.Option<Setting.Listening>
}

type Needs<Op extends Operation.Any> = Charge.Charge | CallsInDoubt | MasterKey | StateStore.StateStore | Operation.Services<Op>

/** Puts the leaders of accounts before `Charge`, if the settings say so. */
export const leading = <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  { cluster, clusterListen }: Settings
): Layer.Layer<Charge.Charge, ClusterUnavailable, Needs<Op>> => {
  if (Option.isNone(cluster)) return Layer.effect(Charge.Charge, Charge.Charge)
  const listen = Option.match(clusterListen, { onNone: () => ({}), onSome: (listen) => ({ listen }) })
  return Leading.layer(operations, { address: cluster.value, ...listen })
}
