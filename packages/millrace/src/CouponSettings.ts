/** The setting of coupons: who decides on what accounts submit. */
import type { CouponsOptions } from "@millrace/core"
import * as Setting from "./Setting.ts"

const MOST = 100

/** `operator`, or after how many confirmations a coupon is accepted. */
const acceptanceOf = (text: string): CouponsOptions | undefined => {
  if (text === "operator") return {}
  return /^\d{1,3}$/u.test(text) && Number(text) <= MOST ? { acceptAfter: Number(text) } : undefined
}

export const flags = {
  couponAcceptance: Setting.make(
    "coupon-acceptance",
    "Who accepts coupons: operator, by millrace coupons; or a number: the coupon is accepted once it worked for so many other accounts, with 0 at once",
    { metavar: "operator|number", parse: acceptanceOf, expected: `operator, or a number from 0 to ${MOST}` },
    "operator"
  )
}
