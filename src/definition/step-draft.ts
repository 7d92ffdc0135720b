// A step as read so far, with the places that later checks point at.
import type {
  ListForm,
  OutputSpec,
  Step,
  StepInputForm,
  StepInputSpec,
  Template,
  TemplatePart,
} from '#sonar/contracts/definition.ts';
import type { Entry } from './field-reading.ts';
import type { Place } from './source-node.ts';

export type TemplateUse = 'program' | 'argument' | 'stdin' | 'env' | 'target';

export interface PlacedTemplate {
  use: TemplateUse;
  path: string;
  template: Template;
  /** Each part with its offset in the source. */
  parts: { part: TemplatePart; at: number }[];
}

export interface InputDraft {
  spec: StepInputSpec;
  entry: Entry;
  from: Place | null;
  pick: Place | null;
  unique: Place | null;
  /** What the author wrote; null where source and use decide. */
  as: StepInputForm | null;
  asPlace: Place;
}

/** Places of what `foreach` says. */
export interface ForeachDraft {
  entry: Place;
  in: Place | null;
  pick: Place | null;
  unique: Place | null;
  group: Place | null;
  batch: Place | null;
  split: Place | null;
  as: Place | null;
  /** What the author wrote; null where the source decides. */
  form: ListForm | null;
}

export interface OutputDraft {
  spec: OutputSpec;
  entry: Entry;
}

export interface StepDraft {
  /** Complete but for what `foreach` and `inputs` read and how, which needs the other steps. */
  step: Step;
  entry: Entry;
  needs: Entry[];
  foreach: ForeachDraft | null;
  inputs: InputDraft[];
  outputs: OutputDraft[];
  templates: PlacedTemplate[];
}
