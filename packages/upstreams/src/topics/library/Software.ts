/** Building, mending and running software. */
import type { Topic } from "../Topic.ts"

export const software: ReadonlyArray<Topic> = [
  {
    category: "Code review",
    templates: [
      "Review this change as a careful colleague: bugs first, then design, then names; skip matters of taste: {code}",
      "Find inputs for which this function in {technology} returns a wrong result or never ends: {code}",
      "Which assumptions does the code below make about time zones, encodings or order, without saying so? {code}",
      "Look only for security problems, rate each by what an attacker gains, and show the smallest repair: {code}",
      "Explain to a {role} new to {technology} what this code does, block by block, and what surprised you: {code}",
      "Simplify this without changing its behaviour, and list the cases that you checked: {code}",
      "Suggest better names for the variables, functions and files here, with a reason for each: {code}",
      "Say what will hurt when this code serves a hundred times the load, and how to measure it first: {code}"
    ]
  },
  {
    category: "Debugging",
    templates: [
      "Here is an error from {technology} and what I did before it. Give the three likeliest causes and how to tell them apart: {text}",
      "Reduce this failing program to the smallest one that still fails in the same way: {code}",
      "Ask me one question at a time until you know why {problem} happens only in production.",
      "Read this stack trace from the bottom up and tell me which frame to look at first: {text}",
      "My test passes alone and fails with the others. List ways that state leaks in {technology} and how to catch each.",
      "Explain how to bisect the history of a repository to find the commit that introduced {problem}.",
      "Propose log lines to add to this code, so that the next occurrence of {problem} explains itself: {code}",
      "Memory of my {technology} service grows by the hour. Lay out a plan for finding out what holds on to it."
    ]
  },
  {
    category: "Testing",
    templates: [
      "Write tests for this function that would each fail for another plausible mistake: {code}",
      "State five properties that must hold for every input of this code, and turn them into property-based tests: {code}",
      "Which cases does this test suite forget? Order them by the harm of a bug there: {code}",
      "Design a test plan for {product} with {duration} to spend: what by hand, what by machine, what not at all.",
      "Rewrite this test so that its name and body tell a reader what is promised: {code}",
      "Invent realistic but fake records for testing {topic}, including the awkward ones: {data}",
      "Describe how to test {problem} without sleeping, without the network and without the wall clock.",
      "Make a checklist for trying a release of {product} as a user who is in a hurry and on a train."
    ]
  },
  {
    category: "Databases and queries",
    templates: [
      "Write an SQL query over these tables that answers: {goal}. Explain each join: {data}",
      "Design a schema for {topic} with its keys, constraints and the three queries it must serve quickly.",
      "This query is slow. Read the plan, say where the time goes, and propose one index at a time: {text}",
      "Plan a migration from {technology} that keeps the service running, with a way back at each step.",
      "Which anomalies can two users cause at once in this transaction, at which isolation level? {code}",
      "Translate this question of a {role} into a query, and the result back into a sentence: {text}",
      "Propose a retention policy for data about {topic}: what to keep, for how long, how to delete it for good.",
      "Find duplicates in the records below although spelling differs, and tell how sure you are of each pair: {data}"
    ]
  },
  {
    category: "API design",
    templates: [
      "Design REST endpoints for {topic}: paths, methods, status codes, errors, paging. Show one example exchange each.",
      "Criticise this interface from the view of someone who has to use it on a Friday evening: {code}",
      "Write the reference page for one endpoint: purpose, parameters with bounds, errors, an example that runs: {code}",
      "How could this API change without breaking clients that exist? Sort ideas into safe, risky and breaking: {text}",
      "Name the resources and verbs of a service for {industry} before any code is written.",
      "Suggest limits, defaults and idempotency rules for an operation that does {goal}.",
      "Model the events that {product} should publish: name, when, payload, who listens.",
      "Generate a typed client in {technology} for the following description, with errors as values: {text}"
    ]
  },
  {
    category: "Technical documentation",
    templates: [
      "Write a README for this project: one sentence, a first use that works when pasted, where to read on: {code}",
      "Turn the discussion below into a decision record: context, options, choice, consequences: {text}",
      "Draft a tutorial that takes someone of {level} from nothing to {goal} with {technology} in {duration}.",
      "Write release notes for users of {product} out of these commit messages; leave out what they cannot notice: {text}",
      "Document the hidden knowledge here: what must be done in which order, and what happens otherwise: {text}",
      "Draw the architecture of {product} in words: parts, what flows between them, where each can fail.",
      "Make a glossary of the terms in this text, each explained in one line without using another of them: {text}",
      "Explain {topic} to three readers in turn: {audience}, a new engineer, and the person on call at night."
    ]
  },
  {
    category: "Operations and incidents",
    templates: [
      "Write a runbook for {problem}: how to notice, how to confirm, how to relieve, how to repair, whom to tell.",
      "Turn this timeline into a review without blame: what happened, why it made sense then, what we change: {text}",
      "Set service level objectives for {product} that match what {audience} really notice.",
      "Which five graphs should the person on call for {product} see first, and what does each look like on a bad day?",
      "Plan a practice outage for a team of {number}: the scenario, the roles, the surprises, the stop signal.",
      "Write a container file for this {technology} application, small, without root, with a health check: {code}",
      "Estimate the monthly cost of running {product} for {number} users, and the first three ways to halve it.",
      "Check this deployment pipeline for steps that cannot be undone and propose guards: {text}"
    ]
  }
]
