/** Names for the types of the OpenAPI document, from which `npm run types` makes `schema.d.ts`. */

import type { components, paths } from './schema';

type Schemas = components['schemas'];

export type GoalLine = Schemas['GoalLine'];
export type GoalReport = Schemas['GoalReport'];
export type GoalPage = Schemas['GoalPage'];
export type AttemptReport = Schemas['AttemptReport'];
export type VerdictReport = Schemas['VerdictReport'];
export type CheckReport = Schemas['CheckReport'];
export type QuestionLine = Schemas['QuestionLine'];
export type QueueReport = Schemas['QueueReport'];
export type QueueLine = Schemas['QueueLine'];
export type HoldReport = Schemas['HoldReport'];
export type AccountLine = Schemas['AccountLine'];
export type OpenedAccount = Schemas['OpenedAccount'];
export type AgentLine = Schemas['AgentLine'];
export type ProjectLine = Schemas['ProjectLine'];
export type CostReport = Schemas['CostReport'];
export type CostGroup = NonNullable<NonNullable<paths['/api/v1/cost']['get']['parameters']['query']>['by']>;
export type UsageReport = Schemas['UsageReport'];
export type DivergenceReport = Schemas['DivergenceReport'];
export type MergeReport = Schemas['MergeReport'];
export type NewGoal = Schemas['NewGoal'];
export type NewMerge = Schemas['NewMerge'];
export type NewRetry = Schemas['NewRetry'];
export type EventPage = Schemas['EventPage'];
export type Problem = Schemas['Problem'];
