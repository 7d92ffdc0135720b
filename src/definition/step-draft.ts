// A step as read so far, with the places that later checks point at.
import type { OutputSpec, Step, StepInputSpec, Template, TemplatePart } from '#sonar/contracts/definition.ts';
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
  /** What the author wrote; null where the mode of the need decides. */
  as: 'file' | 'directory' | null;
}

export interface OutputDraft {
  spec: OutputSpec;
  entry: Entry;
}

export interface StepDraft {
  /** Complete but for `foreach.in`, `inputs[].from` and `inputs[].as`, which need the other steps. */
  step: Step;
  entry: Entry;
  needs: Entry[];
  foreach: { in: Place | null; pick: Place | null } | null;
  inputs: InputDraft[];
  outputs: OutputDraft[];
  templates: PlacedTemplate[];
}
