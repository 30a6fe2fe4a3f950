/** Every operation of the host as a form: its price before the call, what came back, and the same call as code. */
import { useState } from "preact/hooks"
import { CallForm } from "../CallForm.tsx"
import { useTool } from "../Context.ts"
import type { Contract, Operation, Price } from "../Contract.ts"
import { Empty, Page } from "../Parts.tsx"
import { go, hrefOf } from "../Place.ts"

/** Groups whose operations are for browsers alone and have pages of their own, or say nothing about an account's use. */
const ELSEWHERE = new Set(["system", "hooks", "sessions", "passkeys"])

/** Groups that are about the host and the account, after those that do something. */
const LAST = new Set(["catalog", "account", "keys", "billing"])

const matches = (words: string, { key, path, summary }: Operation): boolean => {
  const text = `${key} ${path} ${summary}`.toLowerCase()
  return words
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => text.includes(word))
}

export const Try = ({ chosen }: { readonly chosen: string }) => {
  const { contract } = useTool()
  const operation = contract.byKey(chosen)
  return (
    <Page title="Try" lead="Make a real call. What it costs is said before, and taken only when it succeeds.">
      <div class={operation === undefined ? "try is-list" : "try"}>
        <List contract={contract} chosen={chosen} />
        {operation === undefined ? (
          <div class="try-main">
            <Empty>Choose an operation.</Empty>
          </div>
        ) : (
          <div class="try-main">
            <a class="back" href={hrefOf("try")}>
              All operations
            </a>
            <CallForm key={operation.key} operation={operation} />
          </div>
        )}
      </div>
    </Page>
  )
}

const List = ({ chosen, contract }: { readonly contract: Contract; readonly chosen: string }) => {
  const [words, setWords] = useState("")
  const listed = contract.operations.filter((operation) => !ELSEWHERE.has(operation.group) && matches(words.trim(), operation))
  const groups = contract.groups
    .toSorted((a, b) => Number(LAST.has(a.name)) - Number(LAST.has(b.name)))
    .map(({ name }) => ({ name, operations: listed.filter(({ group }) => group === name) }))
    .filter(({ operations }) => operations.length > 0)
  const choose = (event: SubmitEvent) => {
    event.preventDefault()
    const [first] = groups.flatMap(({ operations }) => operations)
    if (first !== undefined) go("try", first.key)
  }
  return (
    <div class="try-list">
      <search>
        <form onSubmit={choose}>
          <label class="field">
            <span class="unseen">Search the operations</span>
            <input
              type="search"
              placeholder="Search the operations"
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
            />
          </label>
        </form>
      </search>
      <nav aria-label="Operations">
        {groups.map(({ name, operations }) => (
          <div key={name} class="try-group">
            <h2>{name}</h2>
            <ul>
              {operations.map(({ key, price, summary }) => (
                <li key={key}>
                  <a class="choice" href={hrefOf("try", key)} aria-current={key === chosen ? "true" : undefined}>
                    <span>{summary}</span>
                    <span class="price">{shortPrice(price)}</span>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
        {groups.length === 0 ? <Empty>No operation has these words.</Empty> : null}
      </nav>
    </div>
  )
}

const shortPrice = (price: Price | undefined): string => (price === undefined || price.credits === 0 ? "free" : String(price.credits))
