/** What credits are called and worth: by flags of the commands that print money, and by the environment for all of them. */
import { Money } from "@millrace/core"
import { Config, Effect, Option, Struct } from "effect"
import { fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"

const name = { metavar: "one/several", parse: Money.parseName, expected: "the name of one and of several, such as token/tokens" }
const value = { metavar: "amount currency", parse: Money.parse, expected: 'a decimal above 0 and a currency, such as "0.002 EUR"' }

export const flags = {
  creditName: Setting.make("credit-name", "What credits are called: one, and several", name, "credit/credits"),
  creditValue: Setting.make("credit-value", "What one credit is worth, with the currency by ISO 4217", value, "0.001 USD")
}

/** The values of {@link flags}. */
export interface Settings {
  readonly creditName: Pick<Money.Money, "credit" | "credits">
  readonly creditValue: Pick<Money.Money, "value" | "currency">
}

/** The money that the flags of a command say. Provide it as `Money.Current`. */
export const of = ({ creditName, creditValue }: Settings): Money.Money => ({
  ...Struct.pick(creditName, ["credit", "credits"]),
  ...Struct.pick(creditValue, ["value", "currency"])
})

const byVariable = <A>(
  variable: string,
  { expected, parse }: { readonly parse: (text: string) => A | undefined; expected: string },
  fallback: A
) =>
  Effect.flatMap(
    Config.String(variable).pipe(Config.option),
    Option.match({
      onNone: () => Effect.succeed(fallback),
      onSome: (text) => {
        const parsed = parse(text)
        return parsed === undefined ? fail(`${variable} is ${JSON.stringify(text)}: give ${expected}`) : Effect.succeed(parsed)
      }
    })
  )

/** The money that the environment says, for commands without {@link flags}. */
export const byEnvironment = Effect.map(
  Effect.all({
    creditName: byVariable<Settings["creditName"]>("MILLRACE_CREDIT_NAME", name, Money.STANDARD),
    creditValue: byVariable<Settings["creditValue"]>("MILLRACE_CREDIT_VALUE", value, Money.STANDARD)
  }),
  of
)
