/** Home, health, food, journeys and the people around us. */
import type { Topic } from "../Topic.ts"

export const everyday: ReadonlyArray<Topic> = [
  {
    category: "Cooking and recipes",
    templates: [
      "What can I cook in {duration} from {ingredients}? Give two dishes, one of them without an oven.",
      "Write a recipe for {product} as a grandmother in {place} would explain it, with exact amounts all the same.",
      "Replace what contains {constraint} in this recipe, and say how taste and texture change: {text}",
      "Scale this dish for {number} people, and warn me where plain multiplication does not work: {text}",
      "Explain why bread made of {ingredients} turns out dense, in order of likelihood, with a test for each.",
      "Plan a dinner of three courses around {season} vegetables where all but one step can be done the day before.",
      "Suggest five spices that go with {ingredients}, and the one cuisine that each leads to.",
      "Teach me a basic technique through {product}: what to watch, hear and smell at each stage."
    ]
  },
  {
    category: "Meal planning",
    templates: [
      "Plan a week of dinners for {number} people under {budget}, using leftovers twice, with a shopping list by aisle.",
      "Make a menu for someone who must avoid {constraint}, likes {ingredients}, and hates long cooking.",
      "Fill a freezer in one afternoon: six meals, what to label, how long each keeps.",
      "Which lunch boxes would {audience} really eat cold? Give ten, no two alike.",
      "Turn this list of what is in my cupboards into meals, the soonest to spoil first: {data}",
      "Design breakfasts for {goal} that take under ten minutes and need no scales.",
      "Write a camping menu for {duration} without a fridge, cooked on one flame.",
      "Plan food for a party on {occasion} with guests from {place}: quantities, timing, what to buy ready-made."
    ]
  },
  {
    category: "Travel",
    templates: [
      "Plan {duration} in {place} for {audience}, at most two sights a day, with a rainy-day plan.",
      "What should I know before a first visit to {place}: manners, money, trains, food, small dangers?",
      "Find the slow way from {place} to the sea without flying: stops worth a night, rough cost in {budget}.",
      "Pack one small bag for {duration} in {season}, and tell me what to wash on the way.",
      "Write fifteen phrases in {language} for the bakery, the doctor and the last bus home.",
      "Suggest places like {place} that fewer people know, with what each does better and worse.",
      "Draft a message to the hotel about {problem}, polite in tone and clear about what I want.",
      "Design a walk of two hours through {place} on the traces of {topic}, with directions from corner to corner."
    ]
  },
  {
    category: "Fitness and movement",
    templates: [
      "Create a training plan for {goal} over {duration}, three times a week, for someone of {level}.",
      "Show me a workout for a hotel room: no equipment, no jumping, under {duration}.",
      "Explain how to do {skill} safely: starting position, movement, common faults, an easier version.",
      "My body complains about {problem} after sitting all day. Suggest gentle movements, and when to see a doctor.",
      "Prepare a beginner for a first race in {place}: training, food, shoes, the day itself.",
      "Invent a warm-up for children of {age} years that feels like a game about {animal}s.",
      "Adapt this plan for someone recovering from a break of several months: {text}",
      "Keep a log with me: ask what I did today, compare it with {goal}, and adjust tomorrow."
    ]
  },
  {
    category: "Personal finance",
    templates: [
      "Build a monthly budget for a household in {place} with {budget}, with a line for what always gets forgotten.",
      "Explain {topic} to someone who fears numbers, using the price of groceries.",
      "Sort these expenses, find the three that I would miss least, and what they cost in a year: {data}",
      "Compare buying and renting {product} over {duration}: list the assumptions and the point where it tips.",
      "Plan to save for {goal} by {season}: the amount each week, what if a month goes wrong.",
      "Write a letter to a lender asking for time because of {problem}: short, factual, with a proposal.",
      "Which questions should I ask before I put money into {product}? Include the ones sellers dislike.",
      "Teach a child of {age} years about money with three jars and one real decision a week."
    ]
  },
  {
    category: "Home and garden",
    templates: [
      "What can I plant in {season} on a balcony in {place} that faces north? Order by how forgiving it is.",
      "Guide me through fixing {problem} at home: tools, steps, the moment to call someone.",
      "Draw up a cleaning routine for {number} people who share a flat and dislike rotas.",
      "Make a year's calendar for a vegetable bed of two by three metres in {place}.",
      "How do I get {material} clean without harming it? Mildest way first.",
      "Rearrange a room of four by five metres so that it serves for {goal} and for guests.",
      "Diagnose my plant from this description, and tell me what to watch for the next two weeks: {text}",
      "List what to check before winter in a house from {period}, from roof to cellar."
    ]
  },
  {
    category: "Parenting and family",
    templates: [
      "Suggest ten rainy-day activities for children of {age} years with what is in a kitchen drawer.",
      "Help me explain {topic} to my child honestly, in words for someone of {age} years, with the questions that may follow.",
      "Write a bedtime story about a {animal} who learns {skill}, five minutes long, calm at the end.",
      "Our mornings fail because of {problem}. Propose a routine with pictures instead of reminders.",
      "Draft family rules about {topic} that parents have to keep, too.",
      "Plan a birthday party for {number} children around the theme {topic}: games, food, an end that works.",
      "Give me sentences for when siblings fight over {product}, that neither blame nor solve it for them.",
      "Collect interview questions for grandparents about {period}, so that their stories are not lost."
    ]
  },
  {
    category: "Celebrations and gifts",
    templates: [
      "Find gift ideas under {budget} for a {role} who says they need nothing; say what each tells them.",
      "Write a card for {occasion} to {name}: {tone}, four lines, no rhyme.",
      "Plan {occasion} for {number} guests in {place} from three months before to the morning after.",
      "Invent a treasure hunt through {place} with seven riddles that lead from one to the next.",
      "Suggest a present to make by hand from {material} in one evening, with instructions.",
      "Make a playlist brief for {occasion}: how the mood moves by the hour, what must never be played.",
      "Think up a surprise for {audience} that needs no money and no secrets kept for long.",
      "Write invitations to {occasion} in three degrees of formality, all with the same facts."
    ]
  },
  {
    category: "Pets and animals",
    templates: [
      "Is a {animal} right for a flat in {place}, a full-time job and {budget} a month? Be honest.",
      "Teach my {animal} to do {skill} with rewards only, in sessions of three minutes.",
      "My {animal} behaves like this since yesterday. What is harmless, what is for the vet, and how soon? {text}",
      "Write a care sheet for the neighbour who looks after a {animal} for {duration}.",
      "Compare foods for a {animal} by their labels below, and explain what the order of ingredients says: {data}",
      "Build an enrichment toy for a {animal} from {material}, safe to chew, ready in an hour.",
      "Prepare a home for a rescued {animal}: the first day, the first week, what not to do.",
      "Tell ten facts about the {animal} that most owners do not know, with why they matter."
    ]
  }
]
