/** Running a company: plans, people, customers and money. */
import type { Topic } from "../Topic.ts"

export const business: ReadonlyArray<Topic> = [
  {
    category: "Business plans",
    templates: [
      "Write a one-page plan for {company}: problem, customer, offer, price, first hundred sales, what could kill it.",
      "Estimate the yearly market for {product} in {place} from the bottom up, and show each assumption with its weight.",
      "Compare three ways to charge for {product}: once, by month, by use. Say which suits {audience} and why.",
      "List what has to be true for {company} to break even within {duration}, ordered by how unsure it is.",
      "Draft the financial part of a plan for a {industry} start-up with {budget}: costs by month, cash at its lowest point.",
      "Describe the ideal first customer of {product} so precisely that I could find ten of them this week.",
      "Write the answers to the twelve questions that a bank asks before it lends {budget} to a {industry} business.",
      "Plan the closing down of a product line in {industry}: customers, staff, stock, contracts, announcement."
    ]
  },
  {
    category: "Market research",
    templates: [
      "Map the competitors of {company} on two axes that customers really decide by, and name the empty corner.",
      "Write an interview guide of fifteen open questions to learn how {audience} solve {problem} today.",
      "Design a survey of eight questions on {topic}; avoid leading ones and explain how each answer will be used.",
      "Summarise these reviews of {product} into five praises and five complaints, with a count and a quote for each: {text}",
      "Which trends in {industry} could make {product} obsolete within five years? Rate likelihood and warning signs.",
      "Build three personas of people who would never buy {product} and explain what stops each.",
      "Work out what {audience} pay for {problem} in time, money and nerves during one ordinary month.",
      "Tell me how to test demand for {product} in {duration} with {budget} and no code."
    ]
  },
  {
    category: "Pitches and fundraising",
    templates: [
      "Write the ten slides of a pitch for {company}, one sentence and one number each.",
      "Draft a short message to an investor who knows {industry}: why now, why us, what we ask for.",
      "Play a doubting investor: ask me ten hard questions about {company}, one at a time, and grade my replies.",
      "Explain in an elevator, to {audience}, what {product} does and why nobody did it before.",
      "Rewrite our vision as a story that starts with one person's {problem}: {text}",
      "Prepare a grant application outline for {goal}: need, method, milestones, budget of {budget}, measure of success.",
      "Write the monthly update to backers of {company} when sales missed the plan by a third.",
      "Plan a crowdfunding page for {product}: video script, reward levels, stretch goals, and honest risks."
    ]
  },
  {
    category: "Meetings and projects",
    templates: [
      "Set an agenda for a meeting of {duration} that must end with a decision on {topic}; name who prepares what.",
      "Turn this transcript into minutes: decisions, owners, dates, and what was left open: {text}",
      "Break {goal} into work packages of at most three days each, and show which ones block others.",
      "Write a status report for {audience} on a project that is late because of {problem}: facts first, then the new plan.",
      "Hold a pre-mortem: it is a year later and {goal} failed. List the reasons and the earliest sign of each.",
      "Propose a retrospective for a team that is tired of retrospectives, in {duration}, with one concrete outcome.",
      "Draft a charter for a project in {industry}: purpose, scope, what is out of scope, who decides, when we stop.",
      "Rank these tasks by value and effort, and tell me which three to refuse: {data}"
    ]
  },
  {
    category: "Customer support",
    templates: [
      "Answer this complaint about {product} in a {tone} way: say sorry once, fix it, tell what happens when: {text}",
      "Write a help page for {problem} that works for {audience} on a phone, with a step to check success.",
      "Create a decision tree to find out why {product} does not start, with at most five questions.",
      "Draft the notice for an outage at {company}: now, in an hour, and once it is over.",
      "Refuse a refund for {product} kindly, give the reason, and offer something that helps anyway.",
      "Sort these tickets into themes and suggest the one change that would save most of them: {data}",
      "Write ten saved replies for {company} that do not sound saved.",
      "Train a new agent: three calls of rising difficulty about {topic}, with what a very good answer contains."
    ]
  },
  {
    category: "Leading people",
    templates: [
      "Prepare me for a talk with a {role} whose work has slipped: opening sentence, two facts, one question, one offer.",
      "Write feedback on {text} that names the behaviour, its effect and the next step, without any adjective about the person.",
      "Plan the first thirty days of a new {role} at {company}: whom to meet, what to read, what to deliver.",
      "Suggest questions for one-to-one meetings that reveal whether someone is bored, stuck or overloaded.",
      "Draft a message that explains {topic} to a worried team before the rumours do.",
      "Design a fair way for a team to share on-call duty over {occasion}.",
      "Describe how to delegate {goal} at five levels of trust, with what I should stop asking at each.",
      "Two colleagues no longer speak because of {problem}. Outline a conversation that I could host, minute by minute."
    ]
  },
  {
    category: "Negotiation",
    templates: [
      "Help me prepare to negotiate {topic} with {company}: my limit, their likely limit, three trades that cost me little.",
      "Play a landlord in {place} and bargain with me over rent. Stop after eight turns and tell me what I gave away.",
      "Write a reply to this offer that says no to the price and yes to the partnership: {text}",
      "List the interests behind each side's position in a dispute about {problem}, and options that serve both.",
      "Draft an email that asks a supplier of {material} for better terms, given that we pay early.",
      "What would a {role} with ten years in {industry} ask for beyond salary? Rank by chance of a yes.",
      "Suggest calm answers to five pressure tactics that sellers of {product} use.",
      "Write the summary to send after the talks on {topic}, so that nobody remembers another agreement."
    ]
  },
  {
    category: "Contracts and policies in plain words",
    templates: [
      "Explain this clause to {audience} with an example of what it allows and what it forbids: {text}",
      "List everything this agreement obliges {company} to do, with deadline and penalty, in a table: {text}",
      "Draft a house rule on {topic} for a team of {number}, on half a page, with the reason for each point.",
      "Write a privacy notice for {product} that a twelve-year-old would understand, leaving blanks for a lawyer to check.",
      "Which questions should I put to a lawyer before I sign this? Order them by what they could cost me: {text}",
      "Compare the old and the new terms below and tell what changed for the customer, good and bad: {text}",
      "Sketch a volunteer agreement for {occasion}: duties, insurance, expenses, how either side can leave.",
      "Turn the informal deal between {name} and me about {topic} into a list of points that we should both confirm."
    ]
  }
]
