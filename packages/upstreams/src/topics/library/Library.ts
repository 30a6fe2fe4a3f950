/** All topics that come with Millrace, in the order in which they are shown. */
import type { Topic } from "../Topic.ts"
import { business } from "./Business.ts"
import { culture } from "./Culture.ts"
import { everyday } from "./Everyday.ts"
import { learning } from "./Learning.ts"
import { marketing } from "./Marketing.ts"
import { pictures } from "./Pictures.ts"
import { software } from "./Software.ts"
import { thinking } from "./Thinking.ts"
import { work } from "./Work.ts"
import { writing } from "./Writing.ts"

export const library: ReadonlyArray<Topic> = [
  ...pictures,
  ...writing,
  ...business,
  ...marketing,
  ...software,
  ...learning,
  ...thinking,
  ...work,
  ...everyday,
  ...culture
]
