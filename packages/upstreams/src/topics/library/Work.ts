/** One's own working life. */
import type { Topic } from "../Topic.ts"

export const work: ReadonlyArray<Topic> = [
  {
    category: "CVs and cover letters",
    templates: [
      "Rewrite this entry of my CV so that it says what changed because of me, with numbers where I have them: {text}",
      "Write a cover letter of {length} for a {role} at {company} that opens with why them, not with who I am.",
      "Match my experience to this advert: what fits, what is missing, what to say about the gap: {text}",
      "Describe a career break of {duration} in two honest sentences that need no excuse.",
      "Cut my CV to one page for a job in {industry}; tell me what to drop and why: {text}",
      "Write the summary at the top of a profile for a {role} who moves into {industry}.",
      "Suggest projects of a weekend each that would prove {skill} to an employer who doubts it.",
      "Draft a short note to {name}, whom I met at {occasion}, asking for a referral without pressing."
    ]
  },
  {
    category: "Job interviews",
    templates: [
      "Interview me for the position of {role} at {company}: one question at a time, then honest notes at the end.",
      "Help me shape this experience into a story of two minutes with situation, action and result: {text}",
      "What will a panel in {industry} ask about {topic}, and what do they hope to hear behind the answer?",
      "Give me ten questions to put to an employer that show whether people stay there.",
      "Practise the salary question with me; my wish is {budget} and I tend to give in too soon.",
      "Set a take-home task for a {role} that is fair, takes {duration}, and cannot be looked up.",
      "Write a thank-you message after an interview that mentions {topic} and adds one thought I forgot.",
      "How do I answer a question about {problem} in my past without lying and without dwelling on it?"
    ]
  },
  {
    category: "Changing careers",
    templates: [
      "I work as {role} and am drawn to {industry}. List bridges that use what I know, with the first step of each.",
      "Draw up a plan of {duration} to learn {skill} beside a full-time job, with proof of progress each month.",
      "Which parts of my work give me energy? Ask me twelve questions about last week and find the pattern.",
      "Write a message to someone who made the move to {industry}, asking for twenty minutes of advice.",
      "Weigh staying against leaving with me: what each costs, what can be undone, what I would tell a friend.",
      "Describe an ordinary Tuesday of a {role}, hour by hour, including the dull parts.",
      "Calculate how long my savings last if I start over with {budget}, in a mild and in a bad case.",
      "Translate the terms of my old trade into those of {industry}: {text}"
    ]
  },
  {
    category: "Productivity and habits",
    templates: [
      "Plan my day from this list: protect two hours for {goal}, batch the small things, leave room for surprises: {data}",
      "Design a habit that leads to {goal} and is too small to fail, with a cue and what to do after a missed day.",
      "Look at my calendar and tell me which meetings could be a message: {data}",
      "I keep putting off {topic}. Ask what is unpleasant about it, then suggest a first step of five minutes.",
      "Set up a weekly review in {duration}: what to look at, what to throw away, what to decide.",
      "Write an out-of-office reply that really keeps people from expecting an answer, in a {tone} voice.",
      "Sort my inbox rules for a {role}: what to answer now, later, never, and by whom.",
      "Propose a shutdown ritual that ends the working day at home without a commute."
    ]
  },
  {
    category: "Presentations",
    templates: [
      "Outline a talk of {duration} on {topic} for {audience}, with the one thing they should remember.",
      "Turn this report into six slides: a full sentence as the title of each, one chart or picture, no bullet lists: {text}",
      "Which chart shows these numbers best, and what should its title claim? {data}",
      "Write speaker notes for a nervous {role}: short lines, pauses marked, a rescue line for a blackout.",
      "Predict the five toughest questions after a talk on {topic}, and draft calm replies.",
      "Explain {data} to a board in three sentences, without the word significant.",
      "Suggest a live demonstration of {product} that can fail without embarrassing anyone.",
      "Make my conclusion land: offer three endings for this talk, each of under forty words: {text}"
    ]
  },
  {
    category: "Workplace messages",
    templates: [
      "Write to my manager that I need help with {problem}: what I tried, what I suggest, by when I need an answer.",
      "Say no to {topic} in two sentences that keep the door open.",
      "Make this message shorter and kinder without losing the request in it: {text}",
      "Remind {name} about {topic} for the third time, without sarcasm.",
      "Announce that I leave {company}: to my boss, to the team, and to a client.",
      "Apologise for {problem} to a colleague, naming what I did and what I will do differently.",
      "Summarise this long thread for someone who joins now: what is decided, what is open, who waits for whom: {text}",
      "Ask {audience} for feedback on {product} so that they answer with more than two words."
    ]
  }
]
