/** The hosts in sight of this one, the links to them, and which of them leads an account. */
import * as Address from "./Address.ts"
import { Link, type State } from "./Link.ts"
import type { Member } from "./Members.ts"
import { leadersOf, shardOf } from "./Shards.ts"
import type { Secret } from "./Tls.ts"

/** A host as another sees it. Its calls come to it if its link is open. */
export interface HostStatus {
  /** With the port, as the host gives it to the others. */
  readonly address: string
  /** `silent`: the link is open, and the host does not get through to the store. */
  readonly state: "self" | State | "silent"
  /** The shards that it leads, as seen from here. */
  readonly shards: number
}

export class Hosts {
  readonly #self: Member
  readonly #secret: Secret
  readonly #links = new Map<string, Link>()
  #members: ReadonlySet<string> = new Set()
  /** The hosts among which the leaders were chosen, beside this one. */
  #reachable: ReadonlyArray<string> = []
  /** By shard. */
  #leaders: ReadonlyArray<string>

  constructor(self: Member, secret: Secret) {
    this.#self = self
    this.#secret = secret
    this.#leaders = leadersOf([self.id])
  }

  /** The link to the leader of an account. Undefined if that is this host. */
  leaderOf(accountId: string): Link | undefined {
    return this.#links.get(this.#leaders[shardOf(accountId)] ?? "")
  }

  /** Opens links to new hosts, and closes those to hosts that are gone once no call is under way on them. */
  see(members: ReadonlyArray<Member>): void {
    this.#members = new Set(members.map(({ id }) => id))
    for (const { address, id } of members) {
      if (!this.#links.has(id)) this.#links.set(id, new Link(address, this.#secret, () => this.#choose()))
    }
    for (const [id, link] of this.#links) {
      if (this.#members.has(id) || link.isBusy) continue
      this.#links.delete(id)
      link.close()
    }
    this.#choose()
  }

  status(): ReadonlyArray<HostStatus> {
    const shards = Map.groupBy(this.#leaders, (id) => id)
    const led = (id: string) => shards.get(id)?.length ?? 0
    const others = [...this.#links].map(([id, { address, state }]): HostStatus => {
      const isSilent = state === "open" && !this.#members.has(id)
      return { address: Address.format(address), state: isSilent ? "silent" : state, shards: led(id) }
    })
    return [{ address: Address.format(this.#self.address), state: "self", shards: led(this.#self.id) }, ...others]
  }

  close(): void {
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
    this.#choose()
  }

  /** Only a host with an open link leads, so that a call to a host that is down runs here at once. */
  #choose(): void {
    const reachable = [...this.#links].filter(([id, { state }]) => state === "open" && this.#members.has(id)).map(([id]) => id)
    // Each look at the members comes here, and most find nothing new
    if (reachable.length === this.#reachable.length && reachable.every((id) => this.#reachable.includes(id))) return
    this.#reachable = reachable
    this.#leaders = leadersOf([this.#self.id, ...reachable])
  }
}
