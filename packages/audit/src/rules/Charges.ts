/** Rules of prices: the held and charged amounts follow from the quantity and the price version that the hold records. */
import { credits, rule } from "./Rule.ts"

/** Held = quantity × unit price of the recorded version, which was published before and in force at the time. */
export const holdIsPriced = rule("hold-is-priced", ["CreditReserved"], ({ operation, priceVersion, quantity, amount }, { prices, at }) =>
  quantity < 0 ? `a quantity of ${quantity}` : prices.mismatch(operation, priceVersion, quantity, amount, at)
)

/** Charged = units done × unit price of the hold. */
export const chargeIsPriced = rule("charge-is-priced", ["OperationSucceeded"], ({ quantity, charged }, { hold }) => {
  if (hold === undefined || charged === (quantity === 0 ? 0 : (hold.amount / hold.quantity) * quantity)) return undefined
  return `${quantity} of ${hold.quantity} held for ${credits(hold.amount)} were done, but ${credits(charged)} charged`
})
