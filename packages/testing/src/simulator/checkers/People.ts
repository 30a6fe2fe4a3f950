/**
 * Checks what people did: no link admits twice, late or elsewhere, no session and no key lasts longer or shorter than it should, and each
 * address has one account, with its credits once.
 */
import { mistakesIn as keyMistakesIn } from "../../KeyHistory.ts"
import { mistakesIn } from "../../SignInHistory.ts"
import type { Evidence, Report } from "../Evidence.ts"

export const checkPeople = ({ faults, records }: Evidence, report: Report): void => {
  const { people, recorder } = records
  for (const mistake of mistakesIn(people.acts)) report(mistake)
  for (const mistake of keyMistakesIn(people.keyActs, faults.skew)) report(`key ${mistake}`)
  const granted = new Set(
    recorder.accountEvents.flatMap(({ event, stream }) => (event._tag === "AccountVerified" ? [stream.slice("account-".length)] : []))
  )
  const owners = new Map<string, string>()
  for (const act of people.acts) {
    if (act._tag !== "Followed" || act.answer !== "admitted" || act.account === undefined) continue
    if (!granted.has(act.account)) report(`${act.address} was proved, and ${act.account} is not verified`)
    const other = owners.get(act.account) ?? act.address
    if (other !== act.address) report(`${act.account} is of ${other}, and admitted ${act.address}`)
    owners.set(act.account, act.address)
  }
}
