/** The ids of what each account has, oldest first: the index of lists by account. */
import { HashMap, Option, Schema } from "effect"

export const ByAccount = Schema.HashMap(Schema.String, Schema.Array(Schema.String))
export type ByAccount = typeof ByAccount.Type

export const empty: ByAccount = HashMap.empty()

export const idsOf = (index: ByAccount, accountId: string): ReadonlyArray<string> =>
  Option.getOrElse(HashMap.get(index, accountId), () => [])

export const add = (index: ByAccount, accountId: string, id: string): ByAccount =>
  HashMap.set(index, accountId, [...idsOf(index, accountId), id])

/** An account that has nothing left leaves no entry. */
export const remove = (index: ByAccount, accountId: string, id: string): ByAccount => {
  const left = idsOf(index, accountId).filter((other) => other !== id)
  return left.length === 0 ? HashMap.remove(index, accountId) : HashMap.set(index, accountId, left)
}
