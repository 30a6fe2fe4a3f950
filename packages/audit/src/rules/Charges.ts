/** Prices: what is held and charged follows from the quantity and the price version that the hold pins. */
import { credits, rule } from "./Rule.ts"

/** Reserved = quantity × unit price of the pinned version, which was published before and held by then. */
export const holdIsPriced = rule("hold-is-priced", ["CreditReserved"], ({ operation, priceVersion, quantity, amount }, { prices, at }) =>
  quantity < 0 ? `a quantity of ${quantity}` : prices.mismatch(operation, priceVersion, quantity, amount, at)
)

/** Charged = quantity that was done × the unit price of the hold. */
export const chargeIsPriced = rule("charge-is-priced", ["OperationSucceeded"], ({ quantity, charged }, { hold }) => {
  if (hold === undefined || charged === (quantity === 0 ? 0 : (hold.amount / hold.quantity) * quantity)) return undefined
  return `${quantity} of ${hold.quantity} held for ${credits(hold.amount)} were done, but ${credits(charged)} charged`
})
