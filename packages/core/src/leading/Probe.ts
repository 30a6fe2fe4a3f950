/** What a command finds out about the hosts of a cluster from outside. Writes nothing, and opens no link that stays. */
import { Effect } from "effect"
import { MasterKey } from "../vault/MasterKey.ts"
import type { Address } from "./Address.ts"
import * as Tls from "./Tls.ts"

export { type Member, present } from "./Members.ts"

/** Whether a host with our master key listens at an address, something else, or nothing that can be reached. */
export const at = (address: Address): Effect.Effect<"host" | "stranger" | "nothing", never, MasterKey> =>
  Effect.flatMap(MasterKey, (masterKey) => Tls.probe(address, Tls.secretOf(masterKey)))
