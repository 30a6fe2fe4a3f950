/**
 * The addresses of inboxes: pronounceable, unguessable, and each given once for ever. An address is claimed by a stream of its own, which
 * also leads from the address to its inbox. Stream `address-{HMAC of the address}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import type { RandomBytes } from "../vault/RandomBytes.ts"

// generation

/** Sixteen and four letters that sound alike in most languages: a syllable has six bits. */
const CONSONANTS = "bdfghjklmnprstvz"
const VOWELS = "aeio"

/** Syllables in each part of an address: eleven have 66 bits, so addresses cannot be guessed, nor met twice. */
const PARTS = [4, 4, 3] as const

const syllableOf = (byte: number): string => `${CONSONANTS[byte & 15]}${VOWELS[(byte >> 4) & 3]}`

/** A new address at a domain, such as `tibarole-kefosani-demoza@mail.example.com`, with 66 random bits. */
export const generate = (random: RandomBytes, domain: string): string => {
  const parts = PARTS.map((length) => Array.from(random(length), syllableOf).join(""))
  return `${parts.join("-")}@${domain}`
}

// the claim

export const AddressEvent = Schema.TaggedUnion({ AddressClaimed: { inboxId: Schema.String } })
export type AddressEvent = typeof AddressEvent.Type

/** The inbox that has, or had, an address; undefined while nobody ever had it. */
export interface Claim {
  readonly inboxId: string | undefined
}

export const AddressClaim: Decider<Claim, AddressEvent> = {
  category: "address",
  codec: EventCodec.make(AddressEvent),
  initial: { inboxId: undefined },
  evolve: (claim, { inboxId }) => {
    if (claim.inboxId !== undefined) throw new Error("An address belongs to one inbox for ever")
    return { inboxId }
  }
}

/** Some inbox has, or had, the address. */
export class AddressTaken extends Schema.TaggedError<AddressTaken>()("AddressTaken", {}) {
  override get message(): string {
    return "An inbox has, or had, this address"
  }
}

/** Claims an address that nobody ever had. */
export const claim =
  (inboxId: string) =>
  ({ inboxId: owner }: Claim): Decision<AddressEvent, AddressTaken> =>
    owner === undefined ? Result.succeed([{ _tag: "AddressClaimed", inboxId }]) : Result.fail(new AddressTaken())
