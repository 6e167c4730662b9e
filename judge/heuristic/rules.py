"""Which rule answers which criterion: one table a rubric family. A new track adds a table here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...rubrics.model import Rubric
from . import plan, report_generation, report_pilot, setup, targets, validate, vqa, workflow
from .view import Finding, View

Rule = Callable[[View], Finding]

_PLAN: dict[str, Rule] = {
    "S1a": plan.plan_exists, "S1b": plan.plan_pipeline, "S1d": plan.three_candidates, "S1e": plan.plan_image,
    "S1f": plan.plan_diagram,
}  # fmt: skip
_SETUP: dict[str, Rule] = {
    "S2a": setup.weights_obtained, "S2b": setup.inputs_checked, "S2c": setup.environment_works,
    "S2d": setup.few_environment_failures, "S2e": setup.model_works,
}  # fmt: skip

RULES: Mapping[str, Mapping[str, Rule]] = {
    "segmentation": {**_PLAN, **_SETUP, "S1c": targets.covers_target, "S3": validate.masks},
    "segmentation-multiclass": {**_PLAN, **_SETUP, "S1c": targets.covers_labels, "S3": validate.label_maps},
    "detection": {**_PLAN, **_SETUP, "S1c": targets.gives_boxes, "S3": validate.boxes},
    "classification": {**_PLAN, **_SETUP, "S1c": targets.covers_classes, "S3": validate.classes},
    "enhancement": {
        **_PLAN, **_SETUP, "S1c": targets.real_enhancer, "S2b": setup.inputs_checked_untrained, "S3": validate.enhanced,
    },
    "synthesis": {**_PLAN, **_SETUP, "S1c": targets.real_synthesis, "S3": validate.synthesized},
    "vqa": {
        "S1a": plan.plan_exists, "S1b": vqa.runnable_model, "S1c": vqa.schema_understood,
        "S1d": plan.three_candidates, "S1e": vqa.normalisation_planned, "S1f": vqa.smoke_planned,
        "S2a": vqa.dataset_ready, "S2b": vqa.assets_ready, "S2c": setup.environment_works_for_model,
        "S2d": setup.few_environment_failures, "S2e": vqa.question_answered, "S3": validate.answers,
    },
    "report_generation": {
        "S1a": plan.plan_exists, "S1b": report_generation.names_model, "S1c": report_generation.names_entry,
        "S1d": report_generation.case_is_study, "S1e": report_generation.all_images,
        "S1f": report_generation.output_path, "S1g": report_generation.pilot_required,
        "S1h": report_generation.pilot_check, "S1i": plan.plan_image, "S1j": report_generation.image_agrees,
        "S1k": report_generation.candidates_compared,
        "S2a": report_generation.pipeline_executed, "S2b": report_generation.manifest_read,
        "S2c": report_generation.images_from_manifest, "S2d": report_generation.images_grouped,
        "S2e": report_generation.report_written, "S2f": report_generation.entry_as_planned,
        "S2g": report_generation.export_used,
        "S3a": report_pilot.pilot_first, "S3b": report_pilot.same_model,
        "S3c": report_pilot.pilot_writes, "S3d": report_pilot.pilot_opened,
        "S3e": report_pilot.pilot_images, "S3f": report_pilot.images_used,
        "S3g": report_pilot.pilot_rerun,
    },
    "workflow": {
        "S1a": workflow.task_understood, "S1b": workflow.methods_researched, "S1c": workflow.plan_written,
        "S2a": setup.environment_works, "S2b": workflow.work_loaded, "S2c": workflow.paths_verified,
        "S3": validate.small_subset,
    },
}  # fmt: skip


def rules_for(rubric: Rubric) -> Mapping[str, Rule]:
    """The table of a rubric: its id's, else its track's (a custom rubric of a known track), else the workflow's."""
    if rubric.id in RULES:
        return RULES[rubric.id]
    return RULES.get(rubric.track or "workflow", {})
