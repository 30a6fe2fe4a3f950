/**
 * What comes and goes many times a second, such as the requests that run. A `Set` would keep it alive for too long: when V8 makes a new table
 * for a set, the old table keeps what it had and points to the new one. Once one of them is in the old generation, so is all that passes
 * through the set from then on, until the whole heap is collected.
 */

/** A member, until it is removed. */
export interface Member<A> {
  readonly value: A
  /** Its place in the list. */
  at: number
}

export class Members<A> implements Iterable<A> {
  readonly #members: Array<Member<A>> = []

  get size(): number {
    return this.#members.length
  }

  add(value: A): Member<A> {
    const member = { value, at: this.#members.length }
    this.#members.push(member)
    return member
  }

  /** Does nothing if it was removed before. */
  remove(member: Member<A>): void {
    if (this.#members[member.at] !== member) return
    const last = this.#members.pop()
    if (last === undefined || last === member) return
    this.#members[member.at] = last
    last.at = member.at
  }

  /** Those that are there now, also if some are removed meanwhile. */
  [Symbol.iterator](): Iterator<A> {
    return this.#members.map(({ value }) => value).values()
  }
}
