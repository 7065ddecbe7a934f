"""Every place that has a score gets its cell, due; the first reader computes it."""

from django.db import migrations


def make_cells(apps, schema_editor):
    scores = apps.get_model("leaderboard", "Score").objects.order_by()
    cell = apps.get_model("leaderboard", "BoardCell")
    places = scores.values_list("target_id", "problem_id", "size").distinct()
    made = [cell(target_id=target, problem_id=problem, size=size) for target, problem, size in places]
    cell.objects.bulk_create(made, batch_size=500, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0004_kept_at_write_time")]

    operations = [migrations.RunPython(make_cells, migrations.RunPython.noop)]
