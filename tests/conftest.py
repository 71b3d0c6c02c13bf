"""What all tests share: where the repository and the real data are."""

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("outbid", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("outbid")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real movies beside the checkout; the test is skipped where there is none."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data (../shared/data) are not beside this checkout")
    return folder
