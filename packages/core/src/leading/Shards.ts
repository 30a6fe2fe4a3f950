/**
 * Who leads an account. Accounts fall into a fixed number of shards. Each shard is led by one of the hosts in sight, chosen by rendezvous
 * hashing: hosts that see the same hosts choose the same leader without asking each other, and a host that comes or goes moves only its
 * own shards.
 */
import { hash } from "node:crypto"
import { crc32 } from "node:zlib"

/** The number of shards, the same at all hosts. */
export const SHARDS = 256

export const shardOf = (accountId: string): number => crc32(accountId) % SHARDS

/** The leader of each shard: the host with the highest hash of host and shard. `hosts` are ids, at least one. */
export const leadersOf = (hosts: ReadonlyArray<string>): ReadonlyArray<string> =>
  Array.from({ length: SHARDS }, (_, shard) => {
    let [leader = "", highest = ""] = []
    for (const host of hosts) {
      const weight = hash("sha256", `${host} ${shard}`, "hex")
      if (weight > highest) [leader, highest] = [host, weight]
    }
    return leader
  })
