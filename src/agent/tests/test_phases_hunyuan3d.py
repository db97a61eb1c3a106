"""Phases of a program that makes meshes and their textures, with modules of Hunyuan3D's names and call shapes and a real
diffusers pipeline inside."""
import os
import sys
import tempfile
import unittest

from support_mem import HERE, AgentTest
from test_placement import pipeline

sys.path.insert(0, os.path.join(HERE, "shapes", "hunyuan3d_shaped"))


class Hunyuan3D(AgentTest):
    @classmethod
    def setUpClass(cls):
        cls.pipe = pipeline()

    def image(self):
        import torch

        return torch.zeros(1, 3, 32, 32)

    def step(self, image, pipe=None):
        """As Hunyuan3D calls its pipelines: torch's own generator, seeded anew each time."""
        import torch

        embeds = torch.zeros(1, 7, 16)
        return (pipe or self.pipe)(image=image, prompt_embeds=embeds, negative_prompt_embeds=embeds, output_type="pt",
                                   num_inference_steps=2, generator=torch.manual_seed(42)).images

    def test_from_a_picture_to_a_mesh(self):
        from hy3dgen.shapegen.pipelines import Hunyuan3DDiTFlowMatchingPipeline
        from hy3dgen.shapegen.postprocessors import FaceReducer, FloaterRemover

        pipe = Hunyuan3DDiTFlowMatchingPipeline.from_pretrained("weights")
        self.assertIs(type(pipe), Hunyuan3DDiTFlowMatchingPipeline)
        mesh = FaceReducer()(FloaterRemover()(pipe(image=self.image())))
        self.assertEqual(float(mesh), 0.0)
        self.assertEqual(self.path(), ["model_load", "startup", "sampling", "text_encode", "sampling", "vae_decode", "sampling", "unknown",
                                       "mesh_post", "unknown", "mesh_post", "unknown"])
        self.assertEqual(self.sent("phase", phase="model_load")[0]["model"], "Hunyuan3DDiTFlowMatchingPipeline")
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])

    def test_the_texture(self):
        from hy3dgen.texgen.pipelines import Hunyuan3DPaintPipeline

        paint = Hunyuan3DPaintPipeline.from_pretrained({"delight": self.step, "views": self.step})
        self.messages.clear()
        mesh, texture = paint("mesh", image=[self.image()])
        self.assertEqual((mesh, float(texture)), ("mesh", float(self.step(self.step(self.image())).sum())))
        seen = self.path()
        self.assertEqual(seen[0], "texture")
        # a decode or an encode inside is told as what it is; sampling and the rest is the step's
        steps = [p for p in seen[:seen.index("unknown")] if p not in ("vae_encode", "vae_decode", "offload", "text_encode")]
        self.assertEqual([p for at, p in enumerate(steps) if not at or steps[at - 1] != p], ["texture", "delight", "texture", "mesh_post", "texture"])
        self.assertLess(seen.index("delight"), seen.index("vae_decode"))
        jobs = [m["id"] for m in self.sent("job")]
        self.assertTrue(jobs[0].startswith("Hunyuan3DPaintPipeline-"), jobs)

    def test_a_pipeline_that_a_node_has_loaded_is_told_by_its_weights(self):
        for name, phase in (("hunyuan3d-delight-v2-0", "delight"), ("hunyuan3d-paint-v2-0-turbo", "texture"), ("other", "sampling")):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, name)
                self.pipe.save_pretrained(path)
                pipe = type(self.pipe).from_pretrained(path, tokenizer=None, safety_checker=None, feature_extractor=None,
                                                       requires_safety_checker=False)
                pipe.set_progress_bar_config(disable=True)
                self.messages.clear()
                self.step(self.image(), pipe)
                told = {m["phase"] for m in self.sent("phase")} & {"delight", "texture", "sampling"}
                self.assertEqual(told, {phase})

    def test_the_exception_is_the_programs_own(self):
        from hy3dgen.texgen.pipelines import Hunyuan3DPaintPipeline

        error = RuntimeError("mine")

        def bad(image):
            raise error

        with self.assertRaises(RuntimeError) as caught:
            Hunyuan3DPaintPipeline({"delight": bad, "views": bad})("mesh", [1])
        self.assertIs(caught.exception, error)
        self.assertEqual([m["phase"] for m in self.sent("error")], ["delight"])


if __name__ == "__main__":
    unittest.main()
